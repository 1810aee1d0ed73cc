#include <stdio.h>
#include <stdlib.h>

int result;

int main(void) {
    char line[80];
    volatile int number = 42;
    int size = snprintf(line, sizeof line, "%d %5.2f %s %x", number, number / 8.0, "text", 255u);
    result = size + line[1] + atoi("123") + strtol("0x1f", 0, 16);
    printf("%s\n", line);
    fflush(stdout);
    return 0;
}
