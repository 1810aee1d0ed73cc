/* built with: -mavx2 */
#include <immintrin.h>

int result;
static int numbers[64], stored[64];
static long longs[16];
static char bytes[64];

__attribute__((noinline)) static __m256i below(int n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

/* The rest of a loop, as compilers make it of lanes that are left out. */
__attribute__((noinline)) static void add(int *to, const int *from, int n) {
    for (int i = 0; i < n; i += 8) {
        __m256i mask = below(n - i);
        __m256i sum = _mm256_add_epi32(_mm256_maskload_epi32(from + i, mask), _mm256_maskload_epi32(to + i, mask));
        _mm256_maskstore_epi32(to + i, mask, sum);
    }
}

int main(void) {
    volatile int n = 21;
    for (int i = 0; i < 64; i++) numbers[i] = i * n, stored[i] = n - i, longs[i / 4] = i, bytes[i] = i ^ n;
    add(stored, numbers, n);
    add(stored + 5, stored, n - 3);
    __m256i odd = _mm256_slli_epi32(_mm256_loadu_si256((void *)(numbers + 1)), 31);
    __m256 some = _mm256_maskload_ps((float *)stored + 3, odd);
    _mm256_maskstore_ps((float *)stored + 40, _mm256_xor_si256(odd, _mm256_set1_epi32(1 << 31)), some);
    __m128i half = _mm_set_epi64x(n - 30, n);
    _mm_maskstore_epi64((void *)(longs + 2), half, _mm_maskload_epi64((void *)(longs + 8), half));
    _mm_maskstore_pd((double *)longs + 5, half, _mm_maskload_pd((double *)longs, half));
    _mm_maskmoveu_si128(_mm_loadu_si128((void *)stored), _mm_loadu_si128((void *)(bytes + 9)), bytes + 20);
    _mm_maskmove_si64(_mm_cvtsi64_m64(longs[3]), _mm_cvtsi64_m64(0x80ff7f0080ll), bytes + 40);
    _mm_empty();
    /* Lanes that are left out may be where no memory is. */
    void *nothing = (void *)16;
    _mm256_maskstore_epi32(nothing, below(n - 50), odd);
    result = stored[4] + stored[22] + stored[41] + longs[3] + longs[6] + bytes[25] + bytes[42] +
             _mm256_extract_epi32(_mm256_maskload_epi32(nothing, below(0)), 2);
    return 0;
}
