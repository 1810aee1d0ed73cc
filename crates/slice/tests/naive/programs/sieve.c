int result;
static unsigned char composite[120];

int main(void) {
    volatile int limit = 120;
    int count = 0;
    for (int i = 2; i < limit; i++) {
        if (composite[i]) continue;
        count++;
        for (int j = i * i; j < limit; j += i) composite[j] = 1;
    }
    result = count;
    return 0;
}
