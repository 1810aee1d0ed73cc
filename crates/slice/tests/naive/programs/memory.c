#include <string.h>

int result;
static char from[300], to[300];

int main(void) {
    volatile int size = 200;
    for (int i = 0; i < size; i++) from[i] = i * 7;
    memcpy(to, from, size);
    memmove(to + 3, to, 100);
    memset(to + 50, 9, size / 8);
    result = to[12] + to[51] + memcmp(to, from, size);
    return 0;
}
