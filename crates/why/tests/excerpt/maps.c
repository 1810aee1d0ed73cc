/* Memory comes, moves and goes, with and without what is needed in it. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

long found;

int main(void) {
    long size = 1 << 14, *numbers = malloc(size);
    for (int i = 0; i < 8; i++) numbers[i * 100] = i;
    char *noise = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 1 << 16; i += 512) noise[i] = 'x';
    for (int turn = 0; turn < 3; turn++) {
        size *= 8;
        numbers = realloc(numbers, size);
        numbers[900 + turn] = numbers[turn * 100] + turn;
        noise[turn] = 'y';
        noise = mremap(noise, 1 << 16, 1 << 16, MREMAP_MAYMOVE | MREMAP_FIXED, noise + (8 << 20));
    }
    mprotect(noise, 1 << 16, PROT_READ);
    found = numbers[902] + noise[2];
    munmap(noise, 1 << 16);
    printf("%ld\n", found);
    free(numbers);
    return 0;
}
