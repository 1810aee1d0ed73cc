#include <alloca.h>

int result;

static int filled(int n) {
    int local[n], *more = alloca(n * sizeof *more);
    for (int i = 0; i < n; i++) local[i] = i * 3, more[n - 1 - i] = i;
    int s = 0;
    for (int i = 0; i < n; i++) s += local[i] * more[i];
    return n > 2 ? s + filled(n - 1) : s;
}

int main(void) {
    volatile int n = 6;
    result = filled(n);
    return 0;
}
