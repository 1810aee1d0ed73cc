/* Loops, each line of which is mixed with what the next turn needs. */
#include "said.h"

static volatile int sink, kept;
static volatile int stored[8];

__attribute__((noinline)) static int twice(int x) {
    sink = x;
    return x * 2;
}

__attribute__((noinline)) static int sums(int n) {
    int sum = 0;
    for (int i = 0; i < n; i++) {
        (sink = i, SAY(i));
        (sum += twice(i), SAY(sum));
        (stored[i] = sum, SAY(i));
        (kept = sum, SAY(i), SAY(stored[i]));
    }
    return sum;
}

__attribute__((noinline)) static int product(int n) {
    int product = 1;
    while (n > 0) {
        (product *= n, SAY(product));
        (n--, SAY(n));
    }
    return product;
}

__attribute__((noinline)) static int stairs(int n) {
    int found = 0, i = 0;
    do {
        (found += i & 1, SAY(found));
        if (i % 3 == 0) {
            (kept = found, SAY(i));
        }
        for (int j = i; j < i + 2; j++) {
            (sink = j, SAY(j));
        }
        (i += 2, SAY(i));
    } while (i < n);
    return found;
}

int main(int argc, char **argv) {
    (void)argv;
    int all = sums(argc + 5);
    all += product(argc + 4);
    all += stairs(argc * 9);
    tell();
    return all == 0;
}
