#include <stdio.h>
#include <stdlib.h>

int result;

int main(void) {
    int a, b;
    char word[16];
    volatile int n = 1234;
    char line[64];
    sprintf(line, "%d,%d;%s", n, n / 7, "seven");
    int fields = sscanf(line, "%d,%d;%15s", &a, &b, word);
    result = a + b * fields + word[2] + (int)(strtod("2.5e1", 0) * 4) + (int)strtoul("777", 0, 8);
    return 0;
}
