/* One thread gives, another takes; both wait for each other. */
#include <pthread.h>

int result;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int slots[3], filled, done;

static void *gives(void *given) {
    for (int i = 0; i < 8; i++) {
        pthread_mutex_lock(&lock);
        while (filled == 3) pthread_cond_wait(&changed, &lock);
        slots[filled++] = i * *(int *)given;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
    }
    pthread_mutex_lock(&lock);
    done = 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return 0;
}

int main(void) {
    int factor = 5, sum = 0;
    pthread_t giver;
    pthread_create(&giver, 0, gives, &factor);
    for (;;) {
        pthread_mutex_lock(&lock);
        while (!filled && !done) pthread_cond_wait(&changed, &lock);
        if (!filled) break;
        sum = sum * 2 + slots[--filled];
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
    }
    pthread_mutex_unlock(&lock);
    pthread_join(giver, 0);
    result = sum;
    return 0;
}
