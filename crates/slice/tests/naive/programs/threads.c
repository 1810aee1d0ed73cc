#include <pthread.h>

int result;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int total, turns;

static void *counts(void *given) {
    int by = *(int *)given;
    for (int i = 0; i < 6; i++) {
        pthread_mutex_lock(&lock);
        total += by;
        if (total % 4 == 0) turns++;
        pthread_mutex_unlock(&lock);
    }
    return (void *)(long)(by * 10);
}

int main(void) {
    volatile int one = 1, three = 3;
    int by[2] = {one, three};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, counts, &by[i]);
    long sum = 0;
    for (int i = 0; i < 2; i++) {
        void *got;
        pthread_join(threads[i], &got);
        sum += (long)got;
    }
    result = total * 100 + sum + turns;
    return 0;
}
