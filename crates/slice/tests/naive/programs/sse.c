/* built with: -msse4.2 */
#include <smmintrin.h>

int result;
static unsigned char bytes[64];

int main(void) {
    volatile int n = 64;
    for (int i = 0; i < n; i++) bytes[i] = i * 11 + 3;
    __m128i a = _mm_loadu_si128((void *)(bytes + 1)), b = _mm_load_si128((void *)(bytes + 16));
    __m128i c = _mm_unpackhi_epi16(a, b), d = _mm_unpacklo_epi64(b, a);
    c = _mm_insert_epi16(_mm_insert_epi8(c, n, 5), n * 3, 1);
    c = _mm_insert_epi32(c, _mm_extract_epi32(d, 2), 3);
    d = _mm_shufflehi_epi16(_mm_shufflelo_epi16(d, 0x93), 0x39);
    d = _mm_blend_epi16(d, _mm_cvtepu8_epi16(a), 0x2c);
    a = _mm_add_epi32(_mm_mullo_epi32(a, b), _mm_madd_epi16(c, d));
    b = _mm_sub_epi8(_mm_max_epu8(a, b), _mm_avg_epu8(c, d));
    c = _mm_or_si128(_mm_slli_si128(a, 3), _mm_srl_epi16(b, _mm_cvtsi32_si128(n & 7)));
    d = _mm_sad_epu8(c, _mm_sign_epi8(d, a));
    b = _mm_xor_si128(_mm_cmpgt_epi8(a, b), _mm_mul_epu32(c, d));
    a = _mm_abs_epi16(_mm_packus_epi16(a, _mm_alignr_epi8(b, c, 9)));
    __m128 f = _mm_cvtepi32_ps(a), g = _mm_loadl_pi(f, (void *)(bytes + 8));
    f = _mm_movehl_ps(_mm_sqrt_ps(_mm_and_ps(f, g)), _mm_insert_ps(f, g, 0x92));
    g = _mm_add_ss(_mm_movelh_ps(g, f), _mm_rcp_ss(f));
    __m128d h = _mm_loadh_pd(_mm_set1_pd(n), (void *)(bytes + 40)), k = _mm_cvtps_pd(g);
    h = _mm_shuffle_pd(_mm_max_sd(h, k), _mm_round_pd(k, 1), 1);
    result = _mm_movemask_epi8(b) + _mm_movemask_ps(f) + _mm_cvtsd_si32(h) + _mm_extract_epi8(a, 7) +
             _mm_cmpistri(a, c, 0x0c) + _mm_testc_si128(a, b) + _mm_cvttss_si32(g) + (_mm_comigt_ss(f, g) << 4);
    _mm_storel_pd((void *)bytes, h);
    _mm_storeh_pi((void *)(bytes + 8), g);
    result += bytes[3] + bytes[9];
    return 0;
}
