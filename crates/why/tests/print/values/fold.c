#include <stdio.h>

__attribute__((noinline)) unsigned char fold(unsigned char *bytes, unsigned long length) {
    unsigned char hash = 7;
    while (length--) {
        hash = hash * 31 + *bytes++;
    }
    return hash;
}

int main(void) {
    unsigned char text[6] = "hello";
    printf("%d\n", fold(text, 5));
    return 0;
}
