#include <complex.h>

int result;

int main(void) {
    volatile double re = 0.3, im = 0.5;
    double complex c = re + im * I, z = 0;
    int i;
    for (i = 0; i < 12 && creal(z) * creal(z) + cimag(z) * cimag(z) < 4; i++) z = z * z + c;
    float complex f = conjf((float complex)z) / (1 + 2 * I);
    result = i + (int)(cimag(z) * 1000) + (int)(crealf(f) * 100);
    return 0;
}
