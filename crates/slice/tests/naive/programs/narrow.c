/* Parts of registers, written and read on their own. */

int result;

int main(void) {
    volatile unsigned long seed = 0xfedcba9876543210;
    unsigned long x = seed, y = 0, z = 0;
    asm("mov %%ah, %%bl\n movzbl %%bh, %%ecx\n add %%al, %%ah\n xchg %%al, %%ah"
        : "+a"(x), "+b"(y), "=c"(z));
    result = x + y * 3 + z;
    asm("movw $7, %w0\n movb %b1, %h0\n movl %k1, %k2\n bswapl %k2" : "+a"(x), "+d"(y), "+c"(z));
    result += x ^ z;
    asm("movbe %1, %0" : "=r"(y) : "m"(seed));
    asm("lahf\n seto %%al" : "+a"(x) : "r"(y + z) : "cc");
    asm("cbtw\n cwtl\n cltq\n cqto" : "+a"(x), "=d"(y));
    result += x - y;
    asm("cwtd" : "+a"(x), "+d"(y));
    asm("cltd" : "+a"(x), "+d"(z));
    result ^= y + z;
    return 0;
}
