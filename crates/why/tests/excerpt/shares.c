/* Two processes that write to the same memory by turns, also what was there before. */
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct shared {
    volatile long turn, number;
    volatile char bytes[20000];
};
static struct shared *shared;
long sum, other;

static void wait_for(long turn) {
    while (shared->turn != turn) usleep(10);
}

int main(void) {
    shared = mmap(0, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    shared->number = 5;
    pid_t child = fork();
    int own = child == 0;
    for (int round = 0; round < 40; round++) {
        wait_for(round * 2 + own);
        sum += shared->number * (round + 1);
        other += shared->bytes[round * 400] ^ round;
        /* The one makes it a six, the other a five again. */
        shared->number = own ? 5 : 6;
        shared->bytes[(round + 1) * 400] = own ? sum : round;
        if (!own) shared->bytes[19999] = round;
        shared->turn++;
    }
    if (own) return 7;
    int status;
    waitpid(child, &status, 0);
    printf("%ld %ld\n", sum, other);
    return WEXITSTATUS(status) == 7 ? 0 : 1;
}
