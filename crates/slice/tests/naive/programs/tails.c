/* Calls that are jumps. */

int result;
static int noise;

static int down(int n, int s);
static int up(int n, int s);

__attribute__((noinline)) static int last(int n, int s) { noise++; return n > 2 ? s : -s; }

static int (*volatile chosen)(int, int) = last;

__attribute__((noinline)) static int down(int n, int s) {
    if (n <= 0) return chosen(s, n);
    if (n % 4 == 3) s += n;
    return up(n - 2, s + 1);
}

__attribute__((noinline)) static int up(int n, int s) {
    for (int i = 0; i < n; i++) s ^= i;
    if (s % 5 == 0) return last(n, s);
    return down(n - 1, s);
}

int main(void) {
    volatile int n = 11;
    result = down(n, 3) + up(n, 4) * 10 + noise;
    return 0;
}
