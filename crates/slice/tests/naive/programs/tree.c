#include <stdlib.h>

struct tree { int key; struct tree *left, *right; };
int result;

static struct tree *insert(struct tree *at, int key) {
    if (!at) {
        at = calloc(1, sizeof *at);
        at->key = key;
    } else if (key < at->key)
        at->left = insert(at->left, key);
    else if (key > at->key)
        at->right = insert(at->right, key);
    return at;
}

static int depth(const struct tree *at) {
    if (!at) return 0;
    int l = depth(at->left), r = depth(at->right);
    return 1 + (l > r ? l : r);
}

static int folded(const struct tree *at, int sum) {
    if (!at) return sum;
    return folded(at->right, folded(at->left, sum) * 3 + at->key);
}

int main(void) {
    struct tree *root = 0;
    for (volatile int i = 1; i < 15; i++) root = insert(root, i * 7 % 15);
    result = folded(root, 0) + depth(root);
    return 0;
}
