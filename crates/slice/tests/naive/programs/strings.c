/* String instructions: repeated or not, in both directions, on strings that overlap. */

int result;
static char from[64], to[64];

int main(void) {
    volatile long count = 24;
    for (int i = 0; i < 64; i++) from[i] = i * 5 + 1;
    void *s = from, *d = to;
    long n = count;
    asm volatile("rep movsb" : "+S"(s), "+D"(d), "+c"(n) : : "memory");
    s = from, d = from + 3, n = count;
    asm volatile("rep movsb" : "+S"(s), "+D"(d), "+c"(n) : : "memory");
    s = from + 8, d = to + 40, n = 2;
    asm volatile("rep movsq" : "+S"(s), "+D"(d), "+c"(n) : : "memory");
    s = from + 31, d = to + 39, n = count / 3;
    asm volatile("std\n rep movsb\n cld" : "+S"(s), "+D"(d), "+c"(n) : : "memory");
    d = to + 56, n = 0;
    asm volatile("rep stosb" : "+D"(d), "+c"(n) : "a"(result) : "memory");
    d = to + 56, n = 2;
    asm volatile("rep stosl" : "+D"(d), "+c"(n) : "a"(count * 3) : "memory");
    s = from, d = to, n = 40;
    unsigned char same;
    asm volatile("repe cmpsb\n sete %3" : "+S"(s), "+D"(d), "+c"(n), "=r"(same) : : "memory", "cc");
    result = n * 2 + same;
    d = to, n = 60;
    asm volatile("repne scasb" : "+D"(d), "+c"(n) : "a"(from[9]) : "memory", "cc");
    result += n;
    s = from + 2;
    long loaded = 0;
    asm volatile("lodsb" : "+S"(s), "+a"(loaded));
    d = to + 20;
    asm volatile("stosw" : "+D"(d) : "a"(loaded) : "memory");
    asm volatile("movsq" : "+S"(s), "+D"(d) : : "memory");
    for (int i = 0; i < 64; i++) result = result * 3 + to[i];
    return 0;
}
