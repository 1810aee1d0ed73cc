#include <stdlib.h>
#include <string.h>

int result;

int main(int argc, char **argv) {
    setenv("COLOUR", "blue", 1);
    char *got = getenv("COLOUR");
    result = strlen(got) + got[1] * argc + (argv[1] == 0) + abs(-argc) + labs(-3l) + div(17, argc + 4).rem;
    srand(7);
    result += rand() % 10;
    return 0;
}
