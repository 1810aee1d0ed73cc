/* Parameters that nobody keeps: only the caller still knows what they were. */
#include <stdio.h>
#include <stdlib.h>

int total;

__attribute__((noinline, noclone)) void look(int step) {
    total += step; /* LOOK */
    __asm__ volatile("" : : : "rdi", "rsi", "rdx", "rcx", "r8", "r9", "memory");
}

/* None of these is used behind the call. */
__attribute__((noinline, noclone)) int forget(int constant, int kept, const char *name, int *where) {
    total += constant + kept + name[0] + *where;
    look(1);
    return total * 2; /* FORGOT */
}

/* What it is called with it gives on, and forgets as well. */
__attribute__((noinline, noclone)) int give_on(int given, int *where) {
    int sum = forget(17, given + 3, "name", where);
    look(2);
    return sum + total;
}

/* Through a pointer, and by a jump: what is behind a jump cannot be told by the caller. */
__attribute__((noinline, noclone)) int by_jump(int given, int *where) {
    total ^= given;
    return give_on(given * 2, where);
}

int main(int argc, char **argv) {
    int (*volatile pointer)(int, int *) = give_on;
    int mine = argc * 5, own = 3;
    int sum = pointer(mine, &own);
    sum += give_on(mine + 1, &own);
    sum += by_jump(mine, &own);
    printf("%d %d %s\n", sum, mine, argv[0] ? "yes" : "no");
    return 0;
}
