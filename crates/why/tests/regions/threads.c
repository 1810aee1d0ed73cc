// Threads that are blocked or run when the region begins, and go on within it.
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static int ends[2];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int ready, started;
static volatile int stop;
static volatile long turns;

static void starts(void) {
    pthread_mutex_lock(&lock);
    started++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void *reads(void *unused) {
    char bytes[16] = "";
    starts();
    ssize_t got = read(ends[0], bytes, sizeof bytes);
    printf("read %zd: %s\n", got, bytes);
    return unused;
}

static void *waits(void *unused) {
    starts();
    pthread_mutex_lock(&lock);
    while (!ready) pthread_cond_wait(&changed, &lock);
    printf("ready is %d\n", ready);
    pthread_mutex_unlock(&lock);
    return unused;
}

static void *runs(void *unused) {
    double sum = 0;
    starts();
    while (!stop) sum += 1.0 / ++turns;
    printf("turned %ld times: %.17g\n", turns, sum);
    return unused;
}

void begin_here(void) { ready = 7; }

void end_here(void) { ready = 8; }

int main(void) {
    pthread_t threads[3];
    if (pipe(ends)) return 1;
    pthread_create(&threads[0], 0, reads, 0);
    pthread_create(&threads[1], 0, waits, 0);
    pthread_create(&threads[2], 0, runs, 0);
    pthread_mutex_lock(&lock);
    while (started < 3) pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    // Long enough for all to be where they are going to be.
    nanosleep(&(struct timespec){0, 50000000}, 0);
    printf("before\n");
    fflush(stdout);
    begin_here();
    pthread_mutex_lock(&lock);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    if (write(ends[1], "hello", 6) != 6) return 1;
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
    stop = 1;
    pthread_join(threads[2], 0);
    fflush(stdout);
    end_here();
    printf("after\n");
    return 3;
}
