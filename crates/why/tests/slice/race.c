/* A write by one thread gets into what another one does in one piece. */
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int x = 1, stage;
int k;

static void *writes(void *unused) {
    while (stage != 1) {}
    x = 7; /* without the lock */
    stage = 2;
    return unused;
}

int main(void) {
    pthread_t other;
    pthread_create(&other, 0, writes, 0);
    pthread_mutex_lock(&lock);
    k = x; /* checked */
    stage = 1;
    while (stage != 2) {}
    k = k + x; /* used */
    pthread_mutex_unlock(&lock);
    pthread_join(other, 0);
    return k == 2;
}
