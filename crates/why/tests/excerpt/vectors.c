/* Floating point and vectors, kept in registers over what is left out. */
#include <stdio.h>

double total;
static float field[64], others[64];
static char bytes[5000];

int main(void) {
    double kept = 0.5;
    for (int i = 0; i < 64; i++) field[i] = i * 0.25f;
    for (int turn = 0; turn < 4; turn++) {
        for (int i = 0; i < 64; i++) others[i] = others[i] * 1.5f + field[i];
        for (int i = 0; i < 64; i++) kept = kept * 0.75 + field[i];
        __builtin_memset(bytes, turn, sizeof bytes);
    }
    total = kept;
    printf("%f %f %d\n", total, others[7], bytes[4999]);
    return 0;
}
