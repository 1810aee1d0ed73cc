#include <stdio.h>

__attribute__((noinline)) static int inner(int *table, double scale) {
    int told = printf("%d %f\n", table[0], scale);
    printf("%d\n", told);
    return told; /* LOOK */
}

__attribute__((noinline)) static int outer(int count) {
    int table[4] = {count, 2, 3, 4};
    return inner(table, 2.25) + table[1];
}

int main(int argc, char **argv) {
    return outer(argc) == (argv == NULL);
}
