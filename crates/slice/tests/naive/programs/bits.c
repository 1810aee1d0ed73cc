/* built with: -mbmi -mbmi2 -mlzcnt -mpopcnt -madx -msse4.2 */
#include <immintrin.h>

int result;
static unsigned long field[4];

int main(void) {
    volatile unsigned long seed = 0x0f1e2d3c4b5a6978;
    unsigned long a = seed, b = 0;
    for (int i = 0; i < 5; i++) {
        b += _blsr_u64(a) ^ _blsi_u64(a + 1) ^ _blsmsk_u64(a);
        b ^= _andn_u64(a, b) + _bzhi_u64(a, i * 7) + _bextr_u64(b, i, 11);
        a = _pdep_u64(a, b) + _pext_u64(b, a | 0xff) + _tzcnt_u64(b) + _lzcnt_u64(a);
        a += __rorq(b, i) + __builtin_popcountl(b) + (b >> (a & 63)) + ((long)a >> (b & 7));
        unsigned long long high;
        b += _mulx_u64(a, b, &high);
        a ^= high;
        unsigned char carry = _addcarryx_u64(0, a, b, (unsigned long long *)&a);
        b += _addcarry_u64(carry, a, b, (unsigned long long *)&a);
        a = _mm_crc32_u64(a, b) | a << 32;
        unsigned long at = a % 250;
        asm volatile("bts %1, %0\n btc %2, %0" : "+m"(*(unsigned long(*)[4])field) : "r"(at), "r"(at / 2) : "cc");
        unsigned char set;
        asm volatile("bt %2, %1\n setc %0" : "=r"(set) : "m"(*(unsigned long(*)[4])field), "r"(b % 250) : "cc");
        b += set;
    }
    result = a + b + field[0] + field[3];
    return 0;
}
