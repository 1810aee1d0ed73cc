// A constant that leads to a result by way of an input that nobody asks about.
#include <stdio.h>
#include <stdlib.h>

int out;

int main(int argc, char **argv) {
    int given = atoi(argv[1]);                          /* given */
    int scale = argc * 0 + 3;                           /* scale */
    int read = getc(fopen(argv[2], "r"));               /* read */
    int product = read * scale;                         /* product */
    out = product + given;                              /* sum */
    return 0;
}
