#include <math.h>

int result;
static double at[8];
static float small[8];

int main(void) {
    volatile double step = 0.5;
    double s = 0;
    for (int i = 0; i < 8; i++) at[i] = i * step + 1, small[i] = at[i] / 3;
    for (int i = 0; i < 8; i++)
        if (at[i] > 2.0) s += at[i] * small[7 - i];
    s += sqrt(s) + fabs(-s) + floor(s * 1.7) + fmax(s, step) - (float)s;
    unsigned long big = s * 1e10;
    result = (int)s + (int)small[3] + (s != s) + big % 1000 + (int)sin(step) + (int)(10 * pow(s, step));
    return 0;
}
