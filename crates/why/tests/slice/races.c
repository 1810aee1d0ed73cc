/* One thread writes x, another one reads it; the argument says what orders them, or does not. */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static int x;
int outcome;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, other_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_spinlock_t spin;
static pthread_barrier_t barrier;
static sem_t semaphore;
static atomic_int flag;
static volatile int stage, word;
static int ready, is_racy, ends[2];
static pthread_t reader;

static void writes(void) {
    x += 7; /* writes */
}

static void reads(void) {
    outcome = x + 1; /* reads */
}

/* Sees that the other thread has come to a place, in a way that orders nothing. */
static void reach(int place) { stage = place; }

static void await(int place) {
    while (stage < place) usleep(1000);
}

static void with_mutex(void) {
    pthread_mutex_lock(&lock);
    writes();
    ready = 1;
    pthread_mutex_unlock(&lock);
}
static void until_mutex(void) {
    for (int seen = 0; !seen; usleep(1000)) {
        pthread_mutex_lock(&lock);
        seen = ready;
        if (seen) reads();
        pthread_mutex_unlock(&lock);
    }
}

static void with_rwlock(void) {
    pthread_rwlock_wrlock(&rwlock);
    writes();
    ready = 1;
    pthread_rwlock_unlock(&rwlock);
}
static void until_rwlock(void) {
    for (int seen = 0; !seen; usleep(1000)) {
        pthread_rwlock_rdlock(&rwlock);
        seen = ready;
        if (seen) reads();
        pthread_rwlock_unlock(&rwlock);
    }
}

static void with_condition(void) {
    pthread_mutex_lock(&lock);
    writes();
    ready = 1;
    pthread_cond_signal(&condition);
    pthread_mutex_unlock(&lock);
}
static void until_condition(void) {
    pthread_mutex_lock(&lock);
    while (!ready) pthread_cond_wait(&condition, &lock);
    pthread_mutex_unlock(&lock);
    reads();
}

static void with_semaphore(void) { writes(), sem_post(&semaphore); }
static void until_semaphore(void) { sem_wait(&semaphore), reads(); }

static void with_barrier(void) { writes(), pthread_barrier_wait(&barrier); }
static void until_barrier(void) { pthread_barrier_wait(&barrier), reads(); }

static void with_spin(void) {
    pthread_spin_lock(&spin);
    writes();
    ready = 1;
    pthread_spin_unlock(&spin);
}
static void until_spin(void) {
    for (int seen = 0; !seen; usleep(1000)) {
        pthread_spin_lock(&spin);
        seen = ready;
        if (seen) reads();
        pthread_spin_unlock(&spin);
    }
}

static void with_exchange(void) { writes(), atomic_exchange(&flag, 1); }
static void until_load(void) {
    while (!atomic_load_explicit(&flag, memory_order_acquire)) usleep(1000);
    reads();
}

static void with_store(void) {
    writes();
    atomic_store_explicit(&flag, 1, memory_order_release);
}
static void until_taken(void) {
    while (!atomic_exchange(&flag, 0)) usleep(1000);
    reads();
}

static void with_once(void) { pthread_once(&once, writes), reach(1); }
static void until_once(void) { await(1), pthread_once(&once, writes), reads(); }

static void with_pipe(void) {
    writes();
    if (write(ends[1], "", 1) != 1) _exit(3);
}
static void until_pipe(void) {
    char byte;
    if (read(ends[0], &byte, 1) != 1) _exit(3);
    reads();
}

static void with_end(void) {
    writes();
    close(ends[1]);
}
static void until_end(void) {
    char byte;
    if (read(ends[0], &byte, 1) != 0) _exit(3);
    reads();
}

static void with_events(void) {
    uint64_t one = 1;
    writes();
    if (write(ends[1], &one, sizeof one) != sizeof one) _exit(3);
}
static void until_events(void) {
    uint64_t count;
    if (read(ends[0], &count, sizeof count) != sizeof count) _exit(3);
    reads();
}

/* The word is only ever accessed by plain moves, and by the kernel. */
static void with_futex(void) {
    writes();
    word = 1;
    syscall(SYS_futex, &word, 1, 1, 0, 0, 0);
}
static void until_futex(void) {
    while (!word) syscall(SYS_futex, &word, 0, 0, 0, 0, 0);
    reads();
}

static void handler(int number) { (void)number, reads(); }
static void with_signal(void) { writes(), pthread_kill(reader, SIGUSR1); }
static void until_signal(void) {
    while (!*(volatile int *)&outcome) usleep(1000);
}

static void nothing(void) {}
static void just_writes(void) { writes(), reach(1); }
static void just_reads(void) { await(1), reads(); }

static void under_lock(void) {
    pthread_mutex_lock(&lock);
    writes();
    pthread_mutex_unlock(&lock);
    reach(1);
}
static void under_other_lock(void) {
    await(1);
    pthread_mutex_lock(&other_lock);
    reads();
    pthread_mutex_unlock(&other_lock);
}

static void behind_lock(void) {
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    writes();
    reach(1);
}
static void before_lock(void) {
    await(1);
    pthread_mutex_lock(&lock);
    reads();
    pthread_mutex_unlock(&lock);
}

static void after_post(void) { sem_post(&semaphore), writes(), reach(1); }
static void after_wait(void) { sem_wait(&semaphore), await(1), reads(); }

/* Both add to x, and only one of them with the lock. */
static void adds(void) { await(1), writes(), reach(2); }
static void adds_too(void) {
    pthread_mutex_lock(&lock);
    writes();
    pthread_mutex_unlock(&lock);
    reach(1), await(2), reads();
}

static const struct { const char *name; void (*other)(void), (*own)(void); } CASES[] = {
    {"mutex", with_mutex, until_mutex},
    {"rwlock", with_rwlock, until_rwlock},
    {"condition", with_condition, until_condition},
    {"semaphore", with_semaphore, until_semaphore},
    {"barrier", with_barrier, until_barrier},
    {"spin", with_spin, until_spin},
    {"exchange", with_exchange, until_load},
    {"store", with_store, until_taken},
    {"once", with_once, until_once},
    {"pipe", with_pipe, until_pipe},
    {"sockets", with_pipe, until_pipe},
    {"end of pipe", with_end, until_end},
    {"events", with_events, until_events},
    {"futex", with_futex, until_futex},
    {"signal", with_signal, until_signal},
    {"join", writes, nothing},
    {"create", reads, nothing},
    {"racy nothing", just_writes, just_reads},
    {"racy other lock", under_lock, under_other_lock},
    {"racy behind lock", behind_lock, before_lock},
    {"racy after post", after_post, after_wait},
    {"racy lost update", adds, adds_too},
};

static void *run(void *function) {
    (*(void (**)(void))function)();
    /* What a thread does at its end may order it with others by chance. */
    if (is_racy) await(9);
    return 0;
}

int main(int count, char **arguments) {
    const char *name = count > 1 ? arguments[1] : "";
    pthread_spin_init(&spin, 0);
    pthread_barrier_init(&barrier, 0, 2);
    sem_init(&semaphore, 0, 0);
    signal(SIGUSR1, handler);
    reader = pthread_self();
    if (strstr(name, "pipe") && pipe(ends)) return 3;
    if (!strcmp(name, "sockets") && socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) return 3;
    if (!strcmp(name, "events")) ends[0] = ends[1] = eventfd(0, 0);
    for (unsigned i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        if (strcmp(name, CASES[i].name)) continue;
        pthread_t other;
        if (!strcmp(name, "create")) writes();
        is_racy = !strncmp(name, "racy", 4);
        void (*function)(void) = CASES[i].other;
        if (pthread_create(&other, 0, run, &function)) return 3;
        CASES[i].own();
        reach(9);
        pthread_join(other, 0);
        if (!strcmp(name, "join")) reads();
        return outcome < 8;
    }
    return 2;
}
