// A region that begins in a handler, and goes on where that returns to.
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static volatile sig_atomic_t struck;
static volatile unsigned long turns;

static void handle(int signal) {
    if (signal == SIGALRM) struck++;
}

int main(void) {
    struct itimerval soon = {{0, 20000}, {0, 20000}};
    signal(SIGALRM, handle);
    setitimer(ITIMER_REAL, &soon, 0);
    while (struck < 5) turns++;
    printf("%d strikes, %lu turns\n", struck, turns);
    return 2;
}
