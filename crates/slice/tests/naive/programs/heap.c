#include <stdlib.h>
#include <string.h>

int result;

int main(void) {
    char *blocks[12] = {0};
    volatile int rounds = 30;
    for (int i = 0; i < rounds; i++) {
        int at = i * 7 % 12;
        size_t size = 8 + i * 13 % 90;
        if (i % 5 == 4) {
            free(blocks[at]);
            blocks[at] = 0;
        } else {
            blocks[at] = realloc(blocks[at], size);
            memset(blocks[at], i, size);
        }
    }
    for (int i = 0; i < 12; i++)
        if (blocks[i]) result += blocks[i][i % 8] * i;
    return 0;
}
