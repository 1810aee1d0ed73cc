/* built with: -mavx512f -mavx512bw -mavx512vl -mavx512vbmi2 -fno-tree-vectorize */
#include <immintrin.h>

int result;
static int numbers[64], places[64], counts[64];
static long longs[64];
static double reals[64];

/* Several lanes may go to the same place: then the highest is there. */
__attribute__((noinline)) static void scattered(int n) {
    for (int i = 0; i < n; i += 16) {
        __m512i index = _mm512_loadu_si512(places + i), data = _mm512_loadu_si512(numbers + i);
        __mmask16 mask = (__mmask16)(n * 0x1357 >> (i / 16));
        __m512i there = _mm512_mask_i32gather_epi32(data, mask, index, counts, 4);
        _mm512_mask_i32scatter_epi32(counts, mask, index, _mm512_add_epi32(there, data), 4);
    }
}

int main(void) {
    volatile int n = 64;
    for (int i = 0; i < 64; i++) numbers[i] = i * n, places[i] = (i * i + n) % 24, longs[i] = i ^ n, reals[i] = i;
    scattered(n);
    scattered(n - 16);
    _mm512_i32scatter_epi64(longs, _mm256_setr_epi32(1, n - 40, 24, 2, n - 62, 9, n, 5), _mm512_loadu_si512(longs + 30), 8);
    _mm256_mask_i64scatter_epi32(numbers, 5, _mm256_setr_epi64x(n - 60, n, 7, 9), _mm_loadu_si128((void *)counts), 4);
    _mm_mask_i32scatter_pd(reals, (__mmask8)(n - 62), _mm_setr_epi32(n, n - 50, 0, 0), _mm_loadu_pd(reals + 33), 8);
    __m256i four = _mm512_mask_i64gather_epi32(_mm256_set1_epi32(n), (__mmask8)(n * 3 + 1),
                                               _mm512_loadu_si512(longs + 2), numbers, 4);
    __m512d eight = _mm512_i32gather_pd(_mm256_setr_epi32(14, n - 50, 3, 4, n - 60, 1, 2, 0), reals, 8);
    static int some[8];
    static double all[8];
    _mm256_storeu_si256((void *)some, four);
    _mm512_storeu_pd(all, eight);
    __asm__ volatile("" : : : "memory");
    result = counts[1] + counts[4] + counts[16] + longs[24] + longs[2] + numbers[4] + numbers[7] + some[0] + some[6] +
             (int)all[1] + (int)all[3];
    return 0;
}
