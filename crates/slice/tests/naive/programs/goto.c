int result;

int main(void) {
    volatile int n = 14;
    int i = 0, s = 0;
again:
    if (i >= n) goto done;
    i++;
    if (i % 4 == 0) goto again;
    if (i & 1) goto odd;
    s += i;
    if (s > 40) goto done;
    goto again;
odd:
    s ^= i;
    if (i == 9) goto inside;
    for (int j = 0; j < 3; j++) {
        s += j;
    inside:
        if (s % 5 == 1) break;
    }
    goto again;
done:
    result = s;
    return 0;
}
