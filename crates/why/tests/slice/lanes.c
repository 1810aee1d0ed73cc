// What is copied together belongs together only where both halves are asked about.
#include <emmintrin.h>

struct pair { long given, fixed; };
struct pair original, between, copied;
long of_given, of_fixed;

__attribute__((noipa)) static void copy(struct pair *to, const struct pair *from) {
    _mm_storeu_si128((__m128i *)to, _mm_loadu_si128((const __m128i *)from)); /* copied */
}

int main(int argc, char **argv) {
    original.given = argc;                              /* given */
    original.fixed = 5;                                 /* fixed */
    copy(&between, &original);
    copy(&copied, &between);
    of_given = copied.given;                            /* of given */
    of_fixed = copied.fixed;                            /* of fixed */
    return 0;
}
