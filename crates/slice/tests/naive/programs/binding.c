/* built with: -mno-red-zone */
/* Functions that are bound when they are first called: what binds them uses all registers, and puts
   them back before it jumps there. */

int result;
volatile int bound;
static void *targets[3];

__attribute__((noinline)) int linker_hash(const char *name) {
    int hash = 5381;
    for (; *name; name++) hash = hash * 33 + *name;
    return hash;
}

int scaled(int a, int b) { return a * 3 + b; }
double halved(double side, int times) { return side / 2 + times; }
/* One that the linker asks, and which is looked into. */
__attribute__((noinline)) void *chooses(long which) {
    bound += which;
    return which == 1 ? (void *)scaled : (void *)halved;
}

void *linker_finds(long which) {
    if (linker_hash("scaled") == linker_hash("halved")) return 0;
    return targets[which] = chooses(which);
}

asm(".pushsection .text\n"
    ".type linker_binds, @function\n"
    "linker_binds: push %rbx\n mov %rsp, %rbx\n and $-64, %rsp\n sub $192, %rsp\n"
    " mov %rax, (%rsp)\n mov %rcx, 8(%rsp)\n mov %rdx, 16(%rsp)\n mov %rsi, 24(%rsp)\n"
    " mov %rdi, 32(%rsp)\n mov %r8, 40(%rsp)\n mov %r9, 48(%rsp)\n"
    " movups %xmm0, 64(%rsp)\n movups %xmm1, 80(%rsp)\n"
    " mov 8(%rbx), %rdi\n call linker_finds\n mov %rax, %r11\n"
    " movups 64(%rsp), %xmm0\n movups 80(%rsp), %xmm1\n"
    " mov 48(%rsp), %r9\n mov 40(%rsp), %r8\n mov 32(%rsp), %rdi\n mov 24(%rsp), %rsi\n"
    " mov 16(%rsp), %rdx\n mov 8(%rsp), %rcx\n mov (%rsp), %rax\n"
    " mov %rbx, %rsp\n mov (%rsp), %rbx\n add $16, %rsp\n jmp *%r11\n"
    ".size linker_binds, . - linker_binds\n"
    "lazily_1: push $1\n jmp linker_binds\n"
    "lazily_2: push $2\n jmp linker_binds\n"
    ".popsection\n");
int lazily_scaled(int a, int b) asm("lazily_1");
double lazily_halved(double side, int times) asm("lazily_2");

int main(void) {
    volatile int n = 7;
    volatile double side = n;
    long left = n * 5, flags;
    int sum = lazily_scaled(n, 4);
    if (n > 3) sum += lazily_halved(side, n);
    /* What is in a register that no function is handed, and in flags. */
    asm volatile("mov %1, %%r10\n mov $2, %%edi\n mov $3, %%esi\n add %1, %1\n call lazily_1\n"
                 "setc %%al\n movzbl %%al, %%eax\n add %%r10, %%rax\n mov %%rax, %0"
                 : "=r"(flags), "+r"(left)
                 :
                 : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "xmm0", "xmm1",
                   "cc", "memory");
    result = sum + (int)flags + bound;
    return 0;
}
