#include <stdarg.h>

int result;

static int sum(const char *kinds, ...) {
    va_list all;
    va_start(all, kinds);
    double s = 0;
    for (; *kinds; kinds++) switch (*kinds) {
        case 'i': s += va_arg(all, int); break;
        case 'l': s -= va_arg(all, long); break;
        case 'd': s *= va_arg(all, double); break;
        case 's': s += *va_arg(all, const char *); break;
        }
    va_end(all);
    return s;
}

int main(void) {
    volatile int n = 6;
    result = sum("iildsidiiilds", n, 2, 3L, 1.5, "a", n * 2, 0.5, 1, 2, 3, 40L, 2.0, "z");
    return 0;
}
