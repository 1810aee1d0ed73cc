#include <stdlib.h>
#include <string.h>

int result;
static int all[20];

static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

int main(void) {
    volatile int n = 20;
    for (int i = 0; i < n; i++) all[i] = i * i;
    int key = 49;
    int *found = bsearch(&key, all, n, sizeof *all, compare);
    char block[100];
    memset(block, 'a', sizeof block);
    block[77] = 'q';
    char *there = memchr(block, 'q', sizeof block);
    char *copy = strdup("some text to copy");
    result = (found - all) + (there - block) * 10 + strncmp(copy, "some tile", 7) + strcspn(copy, "xyz") +
             (strpbrk(copy, "pqr") - copy) + strnlen(copy, 5) + (memrchr(block, 'a', 90) == block + 89);
    free(copy);
    return 0;
}
