/* A process that goes on as a copy of another one, with memory of all kinds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static int table[3000];
static const char *volatile name = "forks";
long sum, other;

static long deep(int n) {
    volatile char room[4096];
    memset((void *)room, n, sizeof room);
    return n == 0 ? 0 : room[n] + deep(n - 1);
}

int main(void) {
    for (int i = 0; i < 3000; i++) table[i] = i * 7 % 13;
    long *heap = malloc(100000);
    heap[9999] = 41;
    char *kept = mmap(0, 16384, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    strcpy(kept + 5000, "from the parent");
    mprotect(kept, 4096, PROT_NONE);
    pid_t child = fork();
    if (child != 0) {
        int status;
        heap[9999] = 0;
        waitpid(child, &status, 0);
        return WEXITSTATUS(status) == 5 ? 0 : 1;
    }
    for (int i = 0; i < 3000; i++) sum += table[i] * (i & 3);
    other = deep(100);
    sum += heap[9999] + strlen(kept + 5000) + name[0];
    mprotect(kept, 4096, PROT_READ | PROT_WRITE);
    kept[17] = 3;
    sum += kept[17];
    munmap(kept, 8192);
    char *more = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    more[8000] = sum;
    sum += more[8000];
    printf("%ld %ld\n", sum, other);
    return 5;
}
