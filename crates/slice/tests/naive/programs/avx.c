/* built with: -mavx2 -mfma -fvect-cost-model=dynamic */
#include <immintrin.h>

int result;
static int numbers[48];
static float reals[48];
static double longs[24];
static unsigned char bytes[96];

__attribute__((noinline)) static void made(int n) {
    for (int i = 0; i < n; i++) numbers[i] = numbers[i] * 3 + i;
    for (int i = 0; i < n; i++) reals[i] = reals[i] * 1.5f + numbers[i];
    for (int i = 0; i < n / 2; i++) longs[i] = longs[i] * reals[i] - 2;
    for (int i = 0; i < 2 * n; i++) bytes[i] = bytes[i] > 100 ? bytes[i] ^ 3 : i + bytes[i];
}

int main(void) {
    volatile int n = 48;
    for (int i = 0; i < n; i++) numbers[i] = i ^ 9, reals[i] = i / 3, longs[i / 2] = i, bytes[2 * i] = i * 5;
    made(n);
    __m256i a = _mm256_loadu_si256((void *)(numbers + 3)), b = _mm256_loadu_si256((void *)(bytes + 7));
    __m256i c = _mm256_permute2x128_si256(a, b, 0x21), d = _mm256_permute4x64_epi64(a, 0x1b);
    c = _mm256_add_epi16(c, _mm256_shuffle_epi8(d, b));
    d = _mm256_inserti128_si256(d, _mm256_extracti128_si256(c, 1), 0);
    c = _mm256_unpacklo_epi8(c, _mm256_alignr_epi8(d, a, 5));
    d = _mm256_blend_epi32(c, _mm256_broadcastd_epi32(_mm256_castsi256_si128(a)), 0x5a);
    c = _mm256_sllv_epi32(_mm256_srli_si256(d, 3), _mm256_and_si256(a, _mm256_set1_epi32(7)));
    c = _mm256_packs_epi32(c, _mm256_permutevar8x32_epi32(d, a));
    d = _mm256_blendv_epi8(c, d, a);
    __m256 f = _mm256_fmadd_ps(_mm256_loadu_ps(reals), _mm256_loadu_ps(reals + 9), _mm256_cvtepi32_ps(d));
    f = _mm256_hadd_ps(f, _mm256_shuffle_ps(f, f, 0x4e));
    __m256d g = _mm256_cvtps_pd(_mm256_castps256_ps128(f));
    g = _mm256_div_pd(_mm256_unpackhi_pd(g, g), _mm256_set1_pd(3));
    __m128i low = _mm256_castsi256_si128(d);
    result = _mm256_movemask_epi8(d) + _mm256_extract_epi32(c, 3) + _mm_extract_epi16(low, 2) +
             (int)_mm256_cvtsd_f64(g) + _mm_cvtsi128_si32(_mm_shufflelo_epi16(low, 0x1b)) +
             _mm256_testz_si256(a, b) + (int)longs[5] + bytes[70];
    return 0;
}
