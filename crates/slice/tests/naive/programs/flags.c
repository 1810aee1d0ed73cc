/* Flags that live longer than from one instruction to the next. */

int result;

int main(void) {
    volatile long seed = 0x123456789;
    long a = seed, b = a * 3, c = 0, d = 0;
    asm("add %1, %0\n lea 1(%1), %1\n adc $0, %2\n sbb %3, %3" : "+r"(a), "+r"(b), "+r"(c), "+r"(d));
    asm("cmp %1, %0\n inc %1\n setb %b2\n cmovg %0, %3" : "+r"(a), "+r"(b), "+r"(c), "+r"(d));
    asm("stc\n rcl $3, %0\n rcr $1, %1\n cmc\n adc %0, %2" : "+r"(a), "+r"(b), "+r"(c));
    asm("mov %b1, %%cl\n shl %%cl, %0\n setc %b2\n ror %%cl, %k3\n rcr %%cl, %w0" : "+r"(a), "+r"(b), "+r"(c), "+r"(d) : : "rcx");
    asm("pushf\n pop %0\n and $0x8d5, %0\n push %0\n popf\n setz %b1" : "=r"(b), "+r"(c));
    asm("shld $5, %1, %0\n shrd %%cl, %0, %1\n seto %b2" : "+r"(a), "+r"(b), "+r"(d) : "c"(seed));
    asm("bt $3, %0\n sbb %1, %1\n bts %2, %0\n setc %b3\n btc $9, %3" : "+r"(a), "+r"(b), "+r"(c), "+r"(d));
    asm("bsf %0, %1\n cmovz %0, %2\n bsr %3, %2" : "+r"(a), "+r"(b), "+r"(c), "+r"(d));
    asm("neg %0\n sete %b1\n not %2\n and $0, %3\n or $-1, %k1\n dec %0" : "+r"(a), "+r"(b), "+r"(c), "+r"(d));
    asm("xadd %0, %1\n cmpxchg %2, %3\n xchg %0, %2" : "+r"(a), "+r"(b), "+r"(c), "+r"(d) : : "rax");
    asm("1: add %0, %1\n loop 1b" : "+r"(a), "+r"(b) : "c"(seed % 5 + 2));
    asm("jrcxz 1f\n inc %0\n 1: dec %0" : "+r"(a) : "c"(b));
    result = a + b + c + d;
    return 0;
}
