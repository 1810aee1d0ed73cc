// A loop with a branch that nearly always goes the same way, as often as is asked for.

#include <stdlib.h>

unsigned w;

int main(int argc, char **argv) {
    unsigned turns = atoi(argv[argc - 1]), odd = 1, even = 0;
    for (unsigned turn = 0; turn < turns; turn++) { /* turns */
        if (turn % 16 == 15) /* decides */
            even += odd; /* seldom */
        else
            odd += even + turn; /* mostly */
    }
    w = odd + even;
    return 0;
}
