#include <stdio.h>
#include <stdlib.h>

/* Large memory grows by being mapped elsewhere. */
int main(int argc, char **argv) {
    size_t room = 1000, size = 0;
    char *text = malloc(room);
    FILE *file = fopen(argv[1], "r");
    for (int c; (c = getc(file)) != EOF; size++) {  /* got */
        if (size == room)
            text = realloc(text, room *= 2);        /* moved */
        text[size] = c;                             /* kept */
    }
    printf("%c\n", text[atoi(argv[2])]);            /* told */
    return 0;
}
