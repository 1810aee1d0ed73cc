/* Functions that need the registers that they have to bring back. */

int result;

__attribute__((noinline)) static int busy(int a, int b, int c, int d, int e, int f) {
    int g = a * b, h = c * d, i = e * f, j = a - d, k = b - e, l = c - f;
    for (int n = 0; n < 3; n++) {
        g += h ^ n, h += i - n, i ^= j + n, j += k, k -= l, l ^= g;
        a += b, b ^= c, c += d, d -= e, e += f, f ^= a;
    }
    return g + h + i + j + k + l + a + b + c + d + e + f;
}

__attribute__((noinline)) static int between(int n) {
    int kept = n * 7, other = n ^ 3, more = n + 9;
    int got = busy(n, kept, other, more, 1, 2);
    if (got & 1) got += busy(other, 5, n, 3, kept, 4);
    return got + kept * other - more;
}

int main(void) {
    volatile int n = 3;
    int outer = n * 1000;
    for (int i = 0; i < 3; i++) outer += between(n + i);
    result = outer;
    return 0;
}
