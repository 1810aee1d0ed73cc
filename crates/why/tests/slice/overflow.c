/* A name that is too long for where it is copied to overwrites a pointer behind it. */
#include <stdlib.h>
#include <string.h>

static struct { char name[16]; char *env; } globals;

static void keep_name(const char *given) {
    strcpy(globals.name, given); /* overflows */
}

static void work(void) {
    volatile int sum = 0;
    for (int i = 0; i < 100; i++) sum += i;
}

int main(int argc, char **argv) {
    globals.env = malloc(32); /* made */
    work(); /* nothing to do with it */
    keep_name(argc > 1 ? argv[1] : "short");
    work();
    *globals.env = 1; /* crashes */
    free(globals.env);
    return 0;
}
