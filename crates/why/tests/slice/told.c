/* What its lines make is made by calls, is a part of something larger, or is behind a text's end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int sum, parsed;

int main(int argc, char **argv)
{
    char copy[24] = "xxxxxxxxxxxxxxxxxxxx";
    strcpy(copy, argc > 1 ? argv[1] : "longer text"); /* copied */
    char first = copy[0];
    int table[3][2] = {{1, 2}, {3, 4}, {5, argc}}; /* table */
    int entry = table[2][0];
    char words[2][8] = {"one", "two"}; /* words */
    char letter = words[1][1];
    char text[8] = "ab cd";
    char *end = text + 2;
    *end = 0; /* shorter */
    end = text + 4;
    *end = 'x'; /* behind */
    char behind = text[4], closed = text[2];
    for (int i = 0; i < 4; i++) /* turns */
        sum += i; /* added */
    for (char *word = strtok(copy, " "); word; word = strtok(0, " ")) /* taken */
        parsed += atoi(word); /* parsed */
    printf("%c %d %c %c %d %d %d\n", first, entry, letter, behind, closed, sum, parsed); /* end */
    return 0;
}
