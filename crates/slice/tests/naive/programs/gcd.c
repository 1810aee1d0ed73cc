int result;

static unsigned gcd(unsigned a, unsigned b) {
    while (b) {
        unsigned r = a % b;
        a = b, b = r;
    }
    return a;
}

int main(void) {
    volatile unsigned a = 10710, b = 4620;
    result = gcd(a, b) * 1000 + gcd(b, a + 7);
    return 0;
}
