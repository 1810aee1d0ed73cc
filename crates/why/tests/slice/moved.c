#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    int count = atoi(argv[1]);                   /* given */
    int total = 0;
    for (int i = 0; i < argc; i++) {
        total += atoi(argv[argc - 1]);
        count++;                                 /* counted */
        printf("%d %d\n", count, total);         /* printed */
    }
    return count > 2;
}
