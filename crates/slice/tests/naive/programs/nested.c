int result;

int main(void) {
    volatile int n = 5;
    int s = 0;
    do {
        int i = n;
        do {
            s += i;
            if (s % 7 == 3) continue;
            int j = 0;
            while (1) {
                if (++j > i) break;
                if (j * i == s % 11) { s -= j; break; }
                for (int k = j; k; k >>= 1) s ^= k;
            }
        } while (--i > 0);
        n--;
    } while (n > 1);
    result = s;
    return 0;
}
