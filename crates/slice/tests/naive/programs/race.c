/* Threads that only atomic operations order. */
#include <pthread.h>
#include <stdatomic.h>

int result;
static atomic_int ready, claimed[4];
static int data[4];

static void *fills(void *given) {
    int number = (long)given;
    data[number] = number * 7 + 1;
    atomic_fetch_add(&ready, 1);
    for (int i = 0; i < 4; i++) {
        int nobody = 0;
        if (atomic_compare_exchange_strong(&claimed[i], &nobody, number + 1)) break;
    }
    return 0;
}

int main(void) {
    pthread_t threads[3];
    for (long i = 0; i < 3; i++) pthread_create(&threads[i], 0, fills, (void *)i);
    while (atomic_load(&ready) < 3) ;
    for (int i = 0; i < 3; i++) result += data[i];
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    for (int i = 0; i < 4; i++) result = result * 5 + claimed[i];
    return 0;
}
