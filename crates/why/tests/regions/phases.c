// Prints a checksum at the end of each of five phases.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static unsigned table[4096];
static unsigned sum;
__attribute__((noinline)) static void step(int phase) {
    for (int i = 0; i < 4096; i++) table[i] = table[i] * 33 + phase + i;
}
__attribute__((noinline)) static void report(int phase) {
    for (int i = 0; i < 4096; i++) sum = sum * 31 + table[i];
    printf("phase %d: %08x\n", phase, sum);
    fflush(stdout);
}
void work(int phase) {
    for (int turn = 0; turn < 200; turn++) step(phase);
    report(phase);
}
int main(void) {
    for (int phase = 1; phase <= 5; phase++) work(phase);
    return 7;
}
