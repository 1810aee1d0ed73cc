/* built with: -mavx2 */
#include <immintrin.h>

int result;
static int numbers[64], places[64];
static long longs[32];
static double reals[32];

__attribute__((noinline)) static int sum(const int *at, int n) {
    __m256i all = _mm256_setzero_si256();
    for (int i = 0; i + 8 <= n; i += 8) {
        __m256i index = _mm256_loadu_si256((void *)(places + i));
        all = _mm256_add_epi32(all, _mm256_i32gather_epi32(at, index, 4));
    }
    __m128i half = _mm_add_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
    return _mm_extract_epi32(half, 0) + _mm_extract_epi32(half, 3);
}

int main(void) {
    volatile int n = 32;
    for (int i = 0; i < 64; i++) numbers[i] = i * n, places[i] = (i * 7 + n) % 32 - 8;
    for (int i = 0; i < 32; i++) longs[i] = places[i] + i, reals[i] = i / 3.0;
    int total = sum(numbers + 8, n);
    __m256i mask = _mm256_loadu_si256((void *)(longs + 3));
    __m256i index = _mm256_setr_epi32(3, n, 5, 900000000, 7, n - 1, -2, 900000000);
    __m256i chosen = _mm256_setr_epi32(-1, -1, 0, n, -n, -1, -1, 0);
    __m256i some = _mm256_mask_i32gather_epi32(mask, numbers + 10, index, chosen, 4);
    __m128i narrow = _mm256_i64gather_epi32(numbers, _mm256_setr_epi64x(n, 4, -n + 40, 8), 4);
    __m128i two = _mm_mask_i64gather_epi32(narrow, numbers, _mm_set_epi64x(n, 3), _mm_set1_epi32(-n), 4);
    __m256i quads = _mm256_i32gather_epi64((void *)longs, _mm_setr_epi32(1, n - 9, 3, n / 4), 8);
    __m256d halves = _mm256_mask_i64gather_pd(_mm256_castsi256_pd(quads), reals, _mm256_setr_epi64x(1, 6, n - 2, 9),
                                              _mm256_castsi256_pd(_mm256_setr_epi64x(-1, n, -n, 0)), 8);
    __m128 floats = _mm_i32gather_ps((float *)numbers, _mm_setr_epi32(n, n - 1, 3, 2), 4);
    result = total + _mm256_extract_epi32(some, 1) + _mm256_extract_epi32(some, 3) + _mm_extract_epi32(two, 0) +
             (int)_mm256_extract_epi64(quads, 1) + (int)halves[2] + (int)halves[0] + (int)floats[1];
    return 0;
}
