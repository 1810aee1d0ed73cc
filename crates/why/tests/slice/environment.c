#include <stdlib.h>

int width = 12, other;

int main(void) {
    int bias = 3;                  /* default */
    char *told = getenv("BIAS");   /* asked */
    if (told) bias = atoi(told);   /* told */
    int step = bias - 7;           /* step */
    other += bias;                 /* flags */
    return width / step;           /* crash */
}
