#include <stdlib.h>

int result;

static int compare(const void *a, const void *b) {
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

int main(void) {
    int *all = malloc(24 * sizeof *all);
    for (int i = 0; i < 24; i++) all[i] = i * 37 % 24;
    qsort(all, 24, sizeof *all, compare);
    result = all[3] * 100 + all[20];
    free(all);
    return 0;
}
