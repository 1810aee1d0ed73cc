/* Executes the SQL in a file. */
#include <stdio.h>
#include "sqlite3.h"

int main(int argc, char **argv) {
    static char text[1 << 16];
    FILE *file = fopen(argv[1], "r");
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    sqlite3 *database;
    char *error = NULL;
    sqlite3_open(":memory:", &database);
    int status = sqlite3_exec(database, text, NULL, NULL, &error);
    if (error) fprintf(stderr, "%s\n", error);
    return status;
}
