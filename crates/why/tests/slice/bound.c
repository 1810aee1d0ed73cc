// What is handed to functions that are bound when they are first called.
#include <math.h>
#include <stdlib.h>

long w;
double area;

int main(int argc, char **argv) {
    const char *text = argv[1];         /* text */
    int base = argc + 10;               /* base */
    int unused = argc + 11;             /* unused */
    w = strtol(text, NULL, base);       /* used */
    double side = argc + 2;             /* side */
    double power = argc;                /* power */
    area = pow(side, power);            /* squared */
    return unused == 0;
}
