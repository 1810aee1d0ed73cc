/* Lines behind which some of their own variables are gone. */
#include <stdio.h>
#include <stdlib.h>

static int total;

static inline int scale(int value, int by)
{
    int scaled = value * by; /* SCALE */
    if (scaled > 50)
        scaled -= 7;
    return scaled;
}

__attribute__((noinline)) static void collect(int most)
{
    for (int i = 0; i < 3; i++) { /* TURN */
        int square = i * i;
        total += square; /* LOOP */
    }
    if (most > 2) {
        int twice = most * 2;
        total += twice; /* BRANCH */
    }
    { int next = most + 1; total ^= next; } /* BLOCK */
}

__attribute__((noinline)) static int weigh(int a, int b)
{
    int product = a * 37;
    return product + b;
}

int main(int argc, char **argv)
{
    int number = atoi(argc > 1 ? argv[1] : "30");
    collect(argc + 2);
    int weight = weigh(total, argc);
    int scaled = scale(number, 3); /* INLINED */
    total += scaled;
    printf("%d\n", weight); /* LAST */
    return total > 1000 * number;
}
