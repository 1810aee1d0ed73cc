/* String instructions whose counts are computed. */
int result;
static char from[64], to[64], back[64];
static int words[32];
static long longs[16];

__attribute__((noinline)) static void copy(void *d, const void *s, long n) {
    __asm__ volatile("rep movsb" : "+D"(d), "+S"(s), "+c"(n) : : "memory");
}

__attribute__((noinline)) static void copy_back(char *d, const char *s, long n) {
    d += n - 1, s += n - 1;
    __asm__ volatile("std; rep movsb; cld" : "+D"(d), "+S"(s), "+c"(n) : : "memory");
}

__attribute__((noinline)) static void fill(int *d, int value, long n) {
    __asm__ volatile("rep stosl" : "+D"(d), "+c"(n) : "a"(value) : "memory");
}

__attribute__((noinline)) static long equal(const char *a, const char *b, long n) {
    long left = n;
    __asm__ volatile("cmp %%eax, %%eax; repe cmpsb" : "+D"(a), "+S"(b), "+c"(left) : : "cc", "memory");
    return n - left;
}

__attribute__((noinline)) static long find(const char *at, char what, long n) {
    const char *first = at;
    __asm__ volatile("repne scasb" : "+D"(at), "+c"(n) : "a"(what) : "cc", "memory");
    return at - first;
}

int main(void) {
    volatile int n = 20;
    for (int i = 0; i < 64; i++) from[i] = i * n, back[i] = i ^ n;
    for (int i = 0; i < 16; i++) longs[i] = i + n;
    copy(to + n / 5, from, n + 7);
    copy_back(back + 3, to + n / 2, n - 4);
    fill(words + n / 10, n * 3 + to[6], n / 2);
    copy(longs + 2, words, n * 2);
    long same = equal(to + 4, from, n + 20);
    long where = find(back, to[20], 50);
    from[n] = where;
    copy(to + 40, from + same / 2, where < 30 ? 9 : 4);
    /* Only of the ends. */
    copy(back + 40, from + 8, n - 8);
    copy(to + 50, from + 20, n / 2);
    result = back[50] + to[58] + to[9] + to[42] + back[5] + words[3] + words[12] + (int)longs[4] + (int)same + (int)where;
    return 0;
}
