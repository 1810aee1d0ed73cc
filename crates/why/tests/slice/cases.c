#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    int n = atoi(argv[1]);            /* given */
    switch (n) {                      /* chosen */
    case 0: puts("zero"); break;      /* zero */
    case 1: puts("one"); break;       /* one */
    case 2: puts("two"); break;       /* two */
    case 3: exit(2);                  /* left */
    case 4: puts("four"); break;      /* four */
    case 5: abort();                  /* ended */
    case 6: puts("six"); break;       /* six */
    }
    return argc;
}
