#include <ucontext.h>

int result;
static ucontext_t outside, inside;
static int given;

static void squares(void) {
    for (int i = 1; i < 5; i++) {
        given = i * i;
        swapcontext(&inside, &outside);
    }
    given = -1;
}

int main(void) {
    static char stack[16384];
    getcontext(&inside);
    inside.uc_stack.ss_sp = stack;
    inside.uc_stack.ss_size = sizeof stack;
    inside.uc_link = &outside;
    makecontext(&inside, squares, 0);
    volatile int limit = 4;
    int sum = 0;
    for (int i = 0; i < limit; i++) {
        swapcontext(&outside, &inside);
        if (given < 0) break;
        sum = sum * 2 + given;
    }
    result = sum;
    return 0;
}
