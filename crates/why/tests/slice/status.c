#include <stdio.h>
#include <stdlib.h>

static int verify(int n) {
    if (n % 7 == 3)                /* tested */
        return 5;                  /* five */
    return 0;                      /* none */
}

int main(int argc, char **argv) {
    int n = atoi(argv[1]);         /* given */
    printf("%d\n", n);             /* apart */
    int status = verify(n + 1);    /* verified */
    puts("done");                  /* done */
    return status;                 /* returned */
}
