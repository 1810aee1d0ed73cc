/* Threads: one value is made by all of them, another one by each for itself. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
int shared;
static __thread int own;

static void *adds(void *number) {
    for (int i = 0; i < 5; i++) {
        pthread_mutex_lock(&lock);
        shared = shared * 3 + (int)(long)number;
        pthread_mutex_unlock(&lock);
        for (int j = 0; j < 10; j++) own += j * i;
        sched_yield();
    }
    return (void *)(long)own;
}

int main(void) {
    pthread_t threads[3];
    void *result;
    for (long i = 0; i < 3; i++) pthread_create(&threads[i], NULL, adds, (void *)i);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], &result);
    printf("%d %ld\n", shared, (long)result);
    return 0;
}
