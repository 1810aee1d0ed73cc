/* A crash, with what led to it and what did not. */
#include <stdio.h>
#include <stdlib.h>

struct item {
    struct item *next;
    int *count;
};

static int counts[3];

static struct item *build(int length) {
    struct item *first = NULL;
    for (int i = 0; i < length; i++) {
        struct item *item = calloc(1, sizeof *item);
        item->next = first;
        item->count = i % 4 == 3 ? NULL : &counts[i % 3];
        first = item;
        printf("item %d\n", i);
    }
    return first;
}

int main(void) {
    struct item *item = build(5);
    while (item) {
        ++*item->count;
        item = item->next;
    }
    return 0;
}
