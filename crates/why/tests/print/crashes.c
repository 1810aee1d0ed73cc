#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int steps;

__attribute__((noinline)) static int by_abort(int depth) {
    if (depth == 0) abort();
    return by_abort(depth - 1) + 1;
}

__attribute__((noinline)) static int by_assertion(int value) {
    assert(value > 3);
    return value;
}

__attribute__((noinline)) static size_t by_library(const char *text) {
    return strlen(text) + 1;
}

static void handler(int signal) {
    steps += signal; /* HANDLER */
}

__attribute__((noinline)) static int by_signal(int value) {
    signal(SIGUSR1, handler);
    raise(SIGUSR1);
    return value + steps;
}

__attribute__((noinline)) static int by_wrong_pointer(int (*function)(int)) {
    return function(3) + 1;
}

/* push rbx; xor eax, eax; mov eax, [rax]; pop rbx; ret */
static const unsigned char code[] = {0x53, 0x31, 0xc0, 0x8b, 0x00, 0x5b, 0xc3};

__attribute__((noinline)) static int by_made_code(void) {
    void *made = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(made, code, sizeof code);
    return ((int (*)(int))made)(3) + 1;
}

__attribute__((noinline)) static void count(int by) {
    steps += by; /* COUNT */
}

static void *counts(void *unused) {
    for (int i = 0; i < 50; i++) count(1);
    return unused;
}

static int by_threads(void) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, counts, 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
    return steps;
}

static int by_child(int value) {
    if (fork() == 0) {
        count(value);
        _exit(steps);
    }
    int status;
    wait(&status);
    return WEXITSTATUS(status);
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    int result = 0;
    if (!strcmp(how, "abort")) result = by_abort(2);
    if (!strcmp(how, "assertion")) result = by_assertion(2);
    if (!strcmp(how, "library")) result = by_library(argv[2]);
    if (!strcmp(how, "signal")) result = by_signal(5);
    if (!strcmp(how, "pointer")) result = by_wrong_pointer((int (*)(int))argv[2]);
    if (!strcmp(how, "code")) result = by_made_code();
    if (!strcmp(how, "threads")) result = by_threads();
    if (!strcmp(how, "child")) result = by_child(7);
    return result;
}
