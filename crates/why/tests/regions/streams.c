// The standard streams are elsewhere when the region begins.
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void say(int to, const char *text) {
    if (write(to, text, strlen(text)) < 0) _exit(9);
}

void begin_here(void) { say(2, "to standard error\n"); }

int main(void) {
    say(1, "before\n");
    int high = fcntl(1, F_DUPFD, 300), low = dup(1), null = open("/dev/null", O_WRONLY);
    if (high < 0 || low < 0 || null < 0) return 1;
    dup2(null, 1);
    close(null);
    // The number of a standard stream is another file's now.
    int other = dup(2);
    close(other);
    other = open("/dev/null", O_WRONLY);
    begin_here();
    say(1, "nowhere\n");
    say(other, "nowhere\n");
    say(low, "by a low number\n");
    say(high, "by a high number\n");
    return 0;
}
