/* What a handler leaves in registers is not what the interrupted function finds there. */
#include <signal.h>
#include <unistd.h>

static volatile int seed = 5, noise = 3;
int w, counted;

static void handler(int number) {
    counted = number + noise; /* handled */
}

int main(void) {
    signal(SIGUSR1, handler); /* set */
    register int e asm("rbx") = seed; /* made */
    asm volatile("" : "+r"(e));
    asm volatile("syscall" :: "a"(62), "D"(getpid()), "S"(SIGUSR1) : "rcx", "r11", "memory"); /* sent */
    asm volatile("" : "+r"(e));
    w = e + 2; /* used */
    return w == 0;
}
