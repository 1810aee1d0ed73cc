int result;

static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

int main(void) {
    volatile int depth = 7;
    result = fib(depth);
    return 0;
}
