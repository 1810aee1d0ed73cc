int result;
static int calls;

static int odd(unsigned n);
static int even(unsigned n) { calls++; return n ? odd(n - 1) : 1; }
static int odd(unsigned n) { calls += 2; return n ? even(n - 1) : 0; }

static int ackermann(int m, int n) {
    if (!m) return n + 1;
    if (!n) return ackermann(m - 1, 1);
    return ackermann(m - 1, ackermann(m, n - 1));
}

int main(void) {
    volatile int n = 9;
    result = even(n) + odd(n) * 2 + ackermann(2, 2) + calls;
    return 0;
}
