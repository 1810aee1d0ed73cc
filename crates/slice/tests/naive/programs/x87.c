#include <math.h>

int result;

static long double power(long double x, int n) {
    long double p = 1;
    while (n-- > 0) p *= x;
    return p;
}

int main(void) {
    volatile int n = 5;
    long double x = n / 7.0L, y = power(x, n);
    if (y > 0.1L) y = -y;
    long long whole = y * 1000000;
    double narrow = x;
    result = whole + (int)(sqrtl(x) * 10) + (int)fabsl(y) + (narrow < y) + (int)(x - y + x / y);
    return 0;
}
