/* built with: -mno-red-zone */
/* Two functions, of which one puts a register aside for its caller and the other brings it back. */

int result;

asm(".pushsection .text\n put: mov %rbx, (%rdi)\n ret\n .type put, @function\n .size put, . - put\n"
    "get: mov (%rdi), %rbx\n ret\n .type get, @function\n .size get, . - get\n .popsection\n");

int main(void) {
    volatile long n = 7;
    long place[2], got;
    asm volatile("mov %2, %%rbx\n mov %1, %%rdi\n call put\n xor %%ebx, %%ebx\n call get\n mov %%rbx, %0"
                 : "=a"(got) : "r"(place), "c"(n * 3) : "rbx", "rdi", "memory");
    result = got + 1;
    return 0;
}
