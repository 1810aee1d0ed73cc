/* Calls, made or inlined, at the ends of lines and in the middle of them. */
#include "said.h"

static unsigned table[16];
static volatile int sink;

__attribute__((noinline)) static int half(int x) {
    return x / 2;
}

static int scaled(int x, int by) {
    int r = x * (by & 7);
    if (r > 90)
        r -= 40;
    return r;
}

__attribute__((noinline)) static int mixes(int n, int a) {
    int b = a ^ 3, c = 1;
    for (int i = 0; i < n; i++) {
        (a += half(a + i), SAY(a));
        (c ^= scaled(a, i), SAY(c));
        (table[i & 15] = c, SAY(i));
        if (c & 4) {
            (b -= scaled(c, b) + half(i), SAY(b));
        } else {
            (b = half(b) + 1, SAY(b));
        }
        (sink = b, SAY(i), SAY(b));
    }
    int left = n;
    while (left > 0) {
        (table[left & 15] += half(left), SAY(left));
        (left -= 2, SAY(left));
    }
    return a + b + c;
}

int main(int argc, char **argv) {
    (void)argv;
    int all = mixes(argc + 7, argc * 5);
    tell();
    return all == -1;
}
