/* Whole numbers of all sizes: shifts, rotations, divisions, bits. */
#include <stdint.h>

int result;

static uint32_t mixed(uint32_t h, uint8_t byte, int16_t two) {
    h ^= byte;
    h = h << 5 | h >> 27;
    h *= 0x9e3779b1;
    h += two >> 3;
    h ^= h >> (byte & 31);
    h -= (int8_t)byte;
    return h / 7 + h % 11;
}

int main(void) {
    volatile uint64_t seed = 0xdeadbeefcafe;
    uint64_t x = seed;
    uint32_t h = 1;
    for (int i = 0; i < 12; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        h = mixed(h, x >> 33, x >> 17);
        x = x >> (h & 63) | x << (-h & 63);
        if ((int64_t)x < 0) h = ~h;
        uint16_t part = x;
        h += __builtin_bswap32(h) ^ __builtin_bswap64(x) ^ part / (1 + (i & 3));
        h ^= __builtin_popcount(h) + __builtin_ctz(h | 1) + __builtin_clz(h | 1);
        int8_t tiny = h;
        h += tiny * tiny % 13 + (tiny < 0 ? -tiny : tiny / 3);
    }
    result = h;
    return 0;
}
