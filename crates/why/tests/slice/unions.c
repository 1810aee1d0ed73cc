/* Several members are at one place: what was written is meant. */
#include <stdlib.h>

union value {
    void *pointer;
    long whole;
    double fraction;
    float half;
    short small;
};

int outcome;

int main(int argc, char **argv) {
    int given = argc > 1 ? atoi(argv[1]) : 3;
    union value one, other, third;
    one.fraction = given * 1.5; /* fraction */
    double got = one.fraction;
    other.half = got + 1; /* half */
    float sum = other.half;
    third.small = sum; /* small */
    outcome = third.small + 1; /* outcome */
    return 0;
}
