/* Stores of some lanes and loads from here and there, some of them where memory ends. */
#include <immintrin.h>
#include <stdio.h>
#include <sys/mman.h>

int total;
static int table[64], places[8], others[64];

__attribute__((target("avx2"))) int main(void) {
    char *pages = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(pages + 4096, 4096);
    int *last = (int *)(pages + 4096) - 3;
    __m256i three = _mm256_setr_epi32(-1, -1, -1, 0, 0, 0, 0, 0);
    __m256i odd = _mm256_setr_epi32(0, -1, 0, -1, 0, -1, 0, -1);
    for (int turn = 0; turn < 5; turn++) {
        for (int i = 0; i < 64; i++) table[i] += i * turn;
        for (int i = 0; i < 8; i++) places[i] = (i * 5 + turn) % 64;
        __m256i found = _mm256_i32gather_epi32(table, _mm256_loadu_si256((void *)places), 4);
        _mm256_maskstore_epi32(last, three, found);
        _mm256_maskstore_epi32(others + turn, odd, found);
        total += last[1] + others[turn + 3];
        _mm256_maskstore_epi32(others + 30 + turn, odd, _mm256_maskload_epi32(last, three));
    }
    printf("%d %d\n", total, others[31]);
    return 0;
}
