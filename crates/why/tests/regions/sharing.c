// Processes that share memory and run when the region begins, and when it ends.
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile unsigned long *shared;

// What it says depends on when the others ran.
static unsigned long race(void) {
    unsigned long seen = 0;
    for (int i = 0; i < 1000000; i++) {
        (*shared)++;
        seen = seen * 31 + *shared;
    }
    return seen;
}

static void say(const char *who, int round) {
    char text[64];
    int length = snprintf(text, sizeof text, "%s %d: %lx\n", who, round, race());
    if (write(1, text, length) != length) _exit(9);
}

void begin_here(void) { *shared += 5; }

void end_here(void) { *shared += 7; }

int main(void) {
    shared = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return 1;
    for (int child = 0; child < 2; child++) {
        if (!fork()) {
            for (int round = 0; round < 60; round++) say("child", round);
            return 0;
        }
    }
    say("parent", 0);
    begin_here();
    for (int round = 1; round < 6; round++) say("parent", round);
    end_here();
    while (wait(0) > 0) {}
    say("parent", 6);
    return 0;
}
