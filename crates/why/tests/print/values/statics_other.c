#include <stdio.h>

static double state = 2.5;

void other(void) {
    state += 1;
    printf("%f\n", state); /* OTHER */
}
