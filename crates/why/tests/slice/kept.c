/* A function that puts a register aside and brings it back changes nothing for its caller. */
static volatile int p = 1, noise;
int w;

__attribute__((noinline)) static void busy(int n) {
    register int kept asm("rbx") = n;
    asm volatile("" : "+r"(kept));
    noise += kept;
}

int main(void) {
    register int e asm("rbx") = 40; /* made */
    asm volatile("" : "+r"(e));
    if (p) /* guards */
        busy(3); /* called */
    asm volatile("" : "+r"(e));
    w = e + 2; /* used */
    return w == 0;
}
