int result;

static int choose(int n, int m) {
    switch (n) {
    case 0: return m * 3;
    case 1: return m + 17;
    case 2: m ^= 5; break;
    case 3: m -= 9; break;
    case 4: return m / 3;
    case 5: m += n * m; /* and on */
    case 6: m ^= m >> 2; break;
    case 7: return ~m;
    case 40: m += 3; break;
    default: return 1;
    }
    return m + 1;
}

static int dispatched(const char *code, int m) {
    static void *labels[] = {&&add, &&twice, &&back, &&end};
    int times = 3;
    goto *labels[*code++];
add:
    m += *code++;
    goto *labels[*code++];
twice:
    m *= 2;
    goto *labels[*code++];
back:
    if (--times) code -= 3;
    goto *labels[*code++];
end:
    return m;
}

int main(void) {
    int m = 5;
    for (volatile int i = 0; i < 10; i++) m = choose(i, m);
    m += choose(40, m);
    static const char code[] = {0, 7, 1, 0, 2, 2, 3, 3, 3};
    result = m + dispatched(code, m);
    return 0;
}
