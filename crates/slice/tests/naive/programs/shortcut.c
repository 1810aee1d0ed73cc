int result;
static int asked;

static int is_small(int n) { asked++; return n < 10; }
static int is_even(int n) { asked += 10; return n % 2 == 0; }

int main(void) {
    int s = 0;
    for (volatile int i = 3; i < 18; i += 2) {
        int n = i * 5 % 13;
        if (is_small(n) && (is_even(n) || n > 5)) s += n;
        s += !is_even(s) ? n : is_small(s) ? 1 : -1;
        s ^= (n > 4) & (s < 50);
    }
    result = s + asked;
    return 0;
}
