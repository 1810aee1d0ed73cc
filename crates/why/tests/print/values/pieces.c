#include <stdio.h>

struct flags {
    int a : 5;
    unsigned b : 7;
    unsigned short c : 9;
    int d : 3;
};

int main(int argc, char **argv) {
    struct flags flags = {-3, 100, 300, -1};
    printf("%d\n", argc);
    printf("%d %u\n", flags.a, flags.b); /* LOOK */
    return argv == NULL;
}
