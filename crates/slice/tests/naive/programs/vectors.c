typedef int four __attribute__((vector_size(16)));
typedef short eight __attribute__((vector_size(16)));
typedef unsigned char sixteen __attribute__((vector_size(16)));
typedef float floats __attribute__((vector_size(16)));
typedef double doubles __attribute__((vector_size(16)));
typedef long long longs __attribute__((vector_size(16)));

int result;
static int numbers[40];
static short shorts[40];
static unsigned char bytes[64];
static float reals[40];

__attribute__((noinline)) static int summed(int n) {
    int s = 0;
    for (int i = 0; i < n; i++) s += numbers[i] * shorts[i];
    for (int i = 0; i < n; i++) bytes[i] = bytes[i] > 9 ? bytes[i] - 3 : shorts[i];
    for (int i = 0; i < n; i++) reals[i] = reals[i] * 1.5f + numbers[i];
    return s;
}

int main(void) {
    volatile int n = 40;
    for (int i = 0; i < n; i++) numbers[i] = i * i, shorts[i] = 3 - i, bytes[i] = i * 7, reals[i] = i;
    int s = summed(n);
    four a = {s, 2, n, 4}, b = a * 3 - (four){n, n, 1, 1};
    four mixed = __builtin_shuffle(a, b, (four){0, 5, 2, 7}), turned = __builtin_shuffle(b, (four){3, 2, 1, 0});
    eight c = (eight)mixed + (eight)a, d = c > (eight)b;
    sixteen e = (sixteen)d ^ (sixteen)turned, f = __builtin_shuffle(e, (sixteen){15, 1, 2, 3, 0, 9, 8, 7, 6, 5, 4, 11, 10, 12, 13, 14});
    floats g = {s, 1, 2, n}, h = g * g / (g + 1);
    doubles i = {s, n}, j = i * i - 0.5;
    longs k = (longs)a << 3, l = k - (longs)b, m = l == k;
    result = mixed[1] + turned[0] + c[3] + f[5] + (int)h[3] + (int)j[1] + (int)(l[0] + m[1]) + bytes[20] + (int)reals[17];
    return 0;
}
