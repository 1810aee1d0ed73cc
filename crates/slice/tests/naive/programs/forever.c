/* Loops that only a jump out of the function leaves. */
#include <setjmp.h>

int result;
static jmp_buf out;
static int n;

static void step(void) {
    if (++n > 6) longjmp(out, n);
}

static int spin(int by) {
    for (;;) {
        step();
        if (n % 3 == by) result += n;
    }
}

int main(void) {
    volatile int by = 1;
    if (setjmp(out) == 0) spin(by);
    result = result * 2 + n;
    return 0;
}
