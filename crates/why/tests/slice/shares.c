#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

long from_child, from_parent, own;

int main(int argc, char **argv) {
    long *shared =
        mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int ends[2];
    char byte;
    if (pipe(ends)) return 1;
    shared[0] = 1;                 /* stale */
    shared[1] = argc;              /* kept */
    shared[2] = 3;                 /* early */
    pid_t child = fork();
    if (child == 0) {
        read(ends[0], &byte, 1);
        from_parent = shared[2] + 1; /* child reads */
        shared[0] = from_parent * 2; /* child writes */
        return 0;
    }
    shared[2] = 4000;              /* late */
    write(ends[1], "x", 1);
    wait(0);
    from_child = shared[0];        /* parent reads */
    own = shared[1] + 1;           /* parent's own */
    return 0;
}
