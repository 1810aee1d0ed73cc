#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int total;

static int step(int i) {
    int twice = 2 * i; /* twice */
    total += twice; /* total */
    return twice; /* given back */
}

/* Says what it has come to, for ever or so many times. With a third argument, a copy of it does, and
   it only waits. */
int main(int argc, char **argv) {
    int begin = atoi(argv[1]); /* begin */
    int times = atoi(argv[2]); /* times */
    if (argc > 3 && fork()) {
        pause();
    }
    for (int i = begin; times == 0 || i < begin + times; i++) { /* turn */
        int made = step(i); /* made */
        printf("%d %d\n", made, total); /* said */
        fflush(stdout);
        usleep(2000);
    }
}
