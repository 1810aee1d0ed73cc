#include <stdio.h>

static inline __attribute__((always_inline)) int told(unsigned number, unsigned char letter) {
    int sum = number + letter;
    printf("%u %u\n", number, letter); /* LOOK */
    return sum;
}

int main(void) {
    told(200, 250);
    told(40000, 130);
    return 0;
}
