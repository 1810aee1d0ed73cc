/* Loops and calls; half of what is computed has nothing to do with the sum. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct node {
    struct node *next;
    int value;
};

int sum, other;

static struct node *push(struct node *list, int value) {
    struct node *node = malloc(sizeof *node);
    node->next = list;
    node->value = value;
    return node;
}

static int noise(int seed) {
    char bytes[64];
    memset(bytes, seed, sizeof bytes);
    return bytes[seed % 64] * 3;
}

static int power(int base, int exponent) {
    return exponent == 0 ? 1 : base * power(base, exponent - 1);
}

int main(int count, char **words) {
    struct node *list = NULL;
    for (int i = 0; i < 20; i++) {
        list = push(list, i * count);
        other += noise(i);
    }
    for (struct node *node = list; node; node = node->next) sum += node->value;
    printf("%d\n", other);
    sum += power(3, 5);
    printf("%s %d\n", words[0] ? "sum" : "nothing", sum);
    return sum & 7;
}
