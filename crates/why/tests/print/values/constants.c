#include <stdio.h>

enum code { OK, NOT_FOUND = 200, LARGE = 40000, NEGATIVE = -1 };
enum narrow { NONE, ALL = 255 };

enum code large = LARGE, found = NOT_FOUND, below = NEGATIVE;
enum narrow narrow = ALL;
char many[200];

static __attribute__((noinline)) long scale(int value, int by) {
    int offset = 150;
    unsigned limit = 40000;
    long wide = 3000000000L;
    int negative = -150;
    printf("%d\n", value); /* LOOK */
    return value * by + offset + wide + limit + negative;
}

int main(int argc, char **argv) {
    long sum = scale(argc, 200) + scale(argc + 1, 200);
    printf("%ld\n", sum);
    return argv == NULL || many[argc];
}
