#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>

int result;

enum { PAGE = 4096 };

/* Memory that is moved holds what it did; what is new of it is empty. */
int main(void) {
    volatile int seed = 5;
    int *numbers = mmap(0, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int *other = mmap(0, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 20; i++) {
        numbers[i] = seed * i;
        other[PAGE / 4 + i] = seed - i;
    }
    numbers = mremap(numbers, PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, other);
    numbers[3] += numbers[4];
    memcpy(numbers + PAGE / 4, numbers, 64);
    numbers = mremap(numbers, 2 * PAGE, PAGE, 0);
    numbers = mremap(numbers, PAGE, 2 * PAGE, 0);
    for (int i = 0; i < 12; i++)
        result += numbers[i] * (i + 1) + numbers[PAGE / 4 + i] + other[i];
    return 0;
}
