// Children that are blocked or run when the region begins in their parent.
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int to_child[2], from_child[2];

static void say(const char *text) {
    if (write(1, text, strlen(text)) < 0) _exit(9);
}

static int blocked(void) {
    char byte = 0;
    if (read(to_child[0], &byte, 1) != 1) return 1;
    say(byte == 'g' ? "the blocked child goes on\n" : "what?\n");
    return 4;
}

static int running(void) {
    volatile unsigned long sum = 0;
    if (write(from_child[1], "r", 1) != 1) return 1;
    for (long i = 0; i < 100000000; i++) sum = sum * 3 + i;
    char text[64];
    snprintf(text, sizeof text, "the running child: %lx\n", sum);
    say(text);
    if (!fork()) {
        say("a grandchild\n");
        return 0;
    }
    wait(0);
    return 5;
}

void begin_here(void) { say("begun\n"); }

int main(void) {
    char byte;
    int status[2];
    pid_t children[2];
    if (pipe(to_child) || pipe(from_child)) return 1;
    if (!(children[0] = fork())) return blocked();
    if (!(children[1] = fork())) return running();
    if (read(from_child[0], &byte, 1) != 1) return 1;
    say("before\n");
    begin_here();
    if (write(to_child[1], "g", 1) != 1) return 1;
    for (int i = 0; i < 2; i++) waitpid(children[i], &status[i], 0);
    char text[64];
    snprintf(text, sizeof text, "%d %d\n", WEXITSTATUS(status[0]), WEXITSTATUS(status[1]));
    say(text);
    return 6;
}
