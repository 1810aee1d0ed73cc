// Values that are left in registers while functions are bound that others are handed to.
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

long whole, kept, counted;
double power, least;
size_t length, span;
const char *path = "a/b/c";

__attribute__((noipa)) static long add(long value) { return value + 1; } /* one more */

int main(int argc, char **argv) {
    long number = argc + 16;                        /* number */
    double side = argc + 2;                         /* side */
    kept = add(number);                             /* kept */
    length = strlen(path);                          /* length */
    whole = strtol(argv[1], NULL, (int)number);     /* whole */
    power = pow(side, 2);                           /* power */
    least = fmin(power, 2.5);                       /* least */
    long tripled = number * 3;                      /* tripled */
    // No function is handed anything in these.
    register long other __asm__("r10") = tripled;
    register long another __asm__("r11") = tripled;
    register long saved __asm__("rbx") = tripled;
    __asm__ volatile("" : "+r"(other), "+r"(another), "+r"(saved));
    counted = (long)strcspn(path, "c");             /* counted */
    __asm__ volatile("" : "+r"(saved));
    counted += saved;                               /* saved */
    // Nor in flags, which the function looks at: an `and` may leave one of them.
    const char *text = path;
    __asm__ volatile("add %1, %0" : "+r"(tripled) : "r"(number), "D"(text));
    span = strnlen(text, 9);                        /* span */
    if (number > 3) counted += getpid();            /* decided */
    return tripled < 0;
}
