/* System calls: what is read makes the value, what is written does not. */
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

int hash;
static char line[64];

int main(void) {
    int pipes[2];
    struct timespec now;
    if (pipe(pipes)) return 1;
    for (int i = 0; i < 6; i++) {
        char out[16];
        int size = snprintf(out, sizeof out, "line %d\n", i);
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (write(pipes[1], out, size) != size) return 2;
        int got = read(pipes[0], line, sizeof line);
        for (int at = 0; at < got; at++) hash = hash * 31 + line[at];
        if (write(1, out, size) != size) return 3;
    }
    int self = open("/proc/self/stat", O_RDONLY);
    hash += read(self, line, 8) + lseek(self, 0, SEEK_CUR);
    close(self);
    return 0;
}
