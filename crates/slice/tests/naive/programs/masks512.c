/* built with: -mavx512f -mavx512bw -mavx512vl -mavx512vbmi2 -fno-tree-vectorize */
#include <immintrin.h>

int result;
static int numbers[96], stored[96];
static unsigned char bytes[192];
static double reals[32];

/* The rest of a loop, in lanes. */
__attribute__((noinline)) static void copied(unsigned char *to, const unsigned char *from, int n) {
    for (int i = 0; i < n; i += 64) {
        __mmask64 mask = n - i >= 64 ? -1ull : (1ull << (n - i)) - 1;
        _mm512_mask_storeu_epi8(to + i, mask, _mm512_maskz_loadu_epi8(mask, from + i));
    }
}

int main(void) {
    volatile int n = 85;
    for (int i = 0; i < 96; i++) numbers[i] = i * n, stored[i] = n - i, bytes[2 * i] = i ^ n, reals[i / 3] = i;
    copied(bytes + 100, bytes, n);
    __m512i a = _mm512_mask_loadu_epi32(_mm512_loadu_si512(stored), (__mmask16)n, numbers + 3);
    _mm512_mask_storeu_epi32(stored + 20, (__mmask16)(n * 3), a);
    __m256i b = _mm256_maskz_loadu_epi16((__mmask16)(n * 5), bytes + 31);
    _mm256_mask_storeu_epi16(bytes + 3, (__mmask16)n, b);
    __m256d c = _mm256_mask_loadu_pd(_mm256_set1_pd(n), (__mmask8)n, reals + 2);
    _mm256_mask_storeu_pd(reals + 9, (__mmask8)(n >> 1), c);
    _mm512_mask_compressstoreu_epi32(stored + 50, (__mmask16)(n * 7), a);
    __m512i e = _mm512_mask_expandloadu_epi32(a, (__mmask16)(n * 9), stored + 44);
    __m512i f = _mm512_maskz_expandloadu_epi8((__mmask64)n, bytes + 70);
    _mm512_storeu_si512(stored + 70, e);
    _mm512_storeu_si512(bytes + 120, f);
    __mmask16 less = _mm512_mask_cmplt_epi32_mask((__mmask16)(n * 2), a, _mm512_loadu_si512(stored + 8));
    /* Lanes that are left out may be where no memory is. */
    _mm512_mask_storeu_epi32((void *)16, (__mmask16)(n - 85), a);
    result = stored[22] + stored[51] + stored[73] + stored[24] + bytes[5] + bytes[122] + bytes[150] + (int)reals[10] + less;
    return 0;
}
