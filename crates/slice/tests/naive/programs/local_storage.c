#include <pthread.h>

int result;
static __thread int mine = 3;
static __thread char text[16];

static void *own(void *given) {
    mine += (long)given;
    for (int i = 0; i < mine; i++) text[i % 16] = i;
    return (void *)(long)(mine * 10 + text[2]);
}

int main(void) {
    pthread_t threads[2];
    mine = 100;
    for (long i = 0; i < 2; i++) pthread_create(&threads[i], 0, own, (void *)(i + 1));
    for (int i = 0; i < 2; i++) {
        void *got;
        pthread_join(threads[i], &got);
        result = result * 100 + (long)got;
    }
    result += mine + text[0];
    return 0;
}
