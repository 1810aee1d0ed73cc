#include <stdlib.h>

struct node { int value; struct node *next; };
int result;

static struct node *put(struct node *list, int value) {
    if (!list || value < list->value) {
        struct node *new = malloc(sizeof *new);
        new->value = value, new->next = list;
        return new;
    }
    list->next = put(list->next, value);
    return list;
}

int main(void) {
    struct node *list = 0;
    volatile int n = 12;
    for (int i = 0; i < n; i++) list = put(list, i * 29 % 17);
    struct node *turned = 0;
    while (list) {
        struct node *next = list->next;
        list->next = turned, turned = list, list = next;
    }
    for (int i = 1; turned; i++) {
        struct node *next = turned->next;
        result += i * turned->value;
        free(turned);
        turned = next;
    }
    return 0;
}
