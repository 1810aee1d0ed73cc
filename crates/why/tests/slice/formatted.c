#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    char copy[64], text[64];
    strcpy(copy, argv[1]);           /* copied */
    snprintf(text, sizeof text, "%s!", copy);
    puts(text);                      /* told */
    return 0;
}
