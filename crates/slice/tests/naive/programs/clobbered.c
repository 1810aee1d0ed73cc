/* built with: -mno-red-zone */
/* A function that changes a register of its caller's, which only then puts it aside. */

int result;

asm(".pushsection .text\n"
    "changes: lea 5(%rbx), %rbx\n ret\n .type changes, @function\n .size changes, . - changes\n"
    "keeps: call changes\n push %rbx\n imul $3, %rbx\n mov %rbx, %rax\n pop %rbx\n add %rbx, %rax\n ret\n"
    ".type keeps, @function\n .size keeps, . - keeps\n .popsection\n");

int main(void) {
    volatile long n = 7;
    long got, after;
    asm volatile("mov %2, %%rbx\n call keeps\n mov %%rbx, %1"
                 : "=a"(got), "=c"(after) : "d"(n) : "rbx", "memory");
    result = got * 100 + after;
    return 0;
}
