#include <setjmp.h>

int result;
static jmp_buf place;
static int depth;

static int descend(int n) {
    depth++;
    if (n == 0) longjmp(place, depth);
    return descend(n - 1) + 1;
}

int main(void) {
    volatile int tries = 0, sum = 0;
    int local = 3;
    int got = setjmp(place);
    if (got == 0)
        sum = 10;
    else
        sum += got * local;
    if (tries < 3) {
        tries++;
        descend(tries);
    }
    if (sum > 20) sum -= local;
    result = sum + got;
    return 0;
}
