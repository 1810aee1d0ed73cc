#include <stdatomic.h>

int result;
static atomic_int counter;
static atomic_long word;
static _Atomic unsigned char flags;

int main(void) {
    volatile int n = 6;
    for (int i = 0; i < n; i++) {
        atomic_fetch_add(&counter, i);
        int seen = atomic_load(&counter);
        if (!atomic_compare_exchange_strong(&counter, &seen, seen ^ 5)) break;
        long before = atomic_exchange(&word, seen * 3l);
        atomic_fetch_or(&flags, 1 << (before & 7));
        atomic_fetch_and(&word, ~(long)i);
        atomic_fetch_sub(&counter, 1);
    }
    result = counter + word + flags;
    return 0;
}
