/* What is made in a register, of which the next statement makes something without an instruction. */
static int table[16];
int found;

__attribute__((noinline)) static int look(int n)
{
    int i;
    __asm__ volatile("lea 5(%1), %0" : "=r"(i) : "r"(n)); /* made */
    i = i + 1;
    return table[i];
}

int main(int argc, char **argv)
{
    (void)argv;
    for (int k = 0; k < 16; k++) table[k] = k * k;
    found = look(argc);
    return 0;
}
