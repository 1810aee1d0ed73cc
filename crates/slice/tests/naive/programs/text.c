#include <string.h>

int result;

int main(void) {
    char line[64];
    volatile int flag = 1;
    strcpy(line, flag ? "the quick brown fox" : "jumps");
    strcat(line, " over the dog");
    char *brown = strstr(line, "brown");
    char *last = strrchr(line, 'o');
    result = strlen(line) + strcmp(line, "the quick") + (last - brown) + strspn(line, "the ");
    char *word = strtok(line, " ");
    while (word) {
        result += strchr(word, 'o') != 0;
        word = strtok(0, " ");
    }
    return 0;
}
