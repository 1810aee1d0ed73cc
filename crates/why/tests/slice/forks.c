/* A value that three processes made one after the other. With -DALONE one process does it all. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef ALONE
static pid_t alone(void) {
    return 0;
}
#else
#define alone fork
#endif

/* The code is the same in both. */
static pid_t (*volatile create)(void) = alone;

static int factor;
static int *sum;
static volatile int other;

static int wait_for(pid_t child) {
    int status;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}

int main(int argc, char **argv) {
    factor = argc + 1; /* factor */
    other = 17; /* other */
    sum = malloc(sizeof *sum); /* place */
    *sum = atoi(argv[1]); /* given */
    if (*sum < 2) return 1; /* large */
    pid_t child = create(); /* child */
    if (child != 0) return wait_for(child); /* in child */
    *sum += factor; /* added */
    other = factor; /* other in child */
    if (argc > 5) return 2; /* few */
    pid_t grandchild = create(); /* grandchild */
    if (grandchild != 0) return wait_for(grandchild); /* in grandchild */
    int result = *sum * factor; /* result */
    printf("%d\n", result); /* printed */
    fflush(stdout);
    _exit(result);
}
