// What is handed to a function that is bound when it is first called.
#include <stdlib.h>

long w;

int main(int argc, char **argv) {
    const char *text = argv[1];         /* text */
    int base = argc + 10;               /* base */
    int unused = argc + 11;             /* unused */
    w = strtol(text, NULL, base);       /* used */
    return unused == 0;
}
