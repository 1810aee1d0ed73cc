/* Pointers and texts; some lines only read what the next ones change. */
#include "said.h"

struct node {
    struct node *next;
    int value;
};

static struct node nodes[7];
static volatile long sink;

__attribute__((noinline)) static long hash(const char *text) {
    long h = 7;
    for (const char *p = text; *p; p++) {
        (h = h * 31 + *p, SAY(h));
        if (h & 1) {
            (h ^= 5, SAY(h));
        }
        (sink = p - text, SAY(h), SAY(*p));
    }
    return h;
}

__attribute__((noinline)) static struct node *chain(int n) {
    struct node *list = 0;
    for (int i = 0; i < n; i++) {
        struct node *node = &nodes[i];
        (node->value = i * n, SAY(node->value));
        (node->next = list, SAY(i));
        (list = node, SAY(list->value));
    }
    return list;
}

__attribute__((noinline)) static int along(const struct node *node) {
    int total = 0, steps = 0;
    while (node) {
        (total += node->value, SAY(total), SAY(node->value));
        (steps++, SAY(steps), SAY(node->value));
        node = node->next;
    }
    return total * steps;
}

int main(int argc, char **argv) {
    (void)argv;
    long all = hash("whydunit") + along(chain(argc + 6));
    tell();
    return all == 0;
}
