/* 128-bit arithmetic: carries, long multiplications and divisions. */

typedef unsigned __int128 wide;

int result;

static wide modpow(wide b, unsigned e, wide m) {
    wide r = 1;
    for (b %= m; e; e >>= 1, b = b * b % m)
        if (e & 1) r = r * b % m;
    return r;
}

int main(void) {
    volatile unsigned long seed = 0x123456789abcdef1;
    wide a = (wide)seed * seed + 77, b = a << 13 ^ a >> 90;
    __int128 c = -(__int128)b;
    a += b;
    a -= (wide)c >> 3;
    result = (int)(modpow(a, 13, 1000000007) + (c < 0) + (a > b) + (unsigned long)(a / (seed | 1)));
    return 0;
}
