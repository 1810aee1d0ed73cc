int result;

static int applied(int (*f)(int), int n) { return f(n) + f(n + 1); }
static int add(int n) { return n + 3; }
static int square(int n) { return n * n; }
static int (*chosen(int n))(int) { return n > 3 ? add : square; }

int main(void) {
    volatile int n = 2;
    for (; n < 7; n++) result += applied(chosen(n), n);
    return 0;
}
