#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum colour { RED, GREEN = 5, BLUE };
struct point { int x, y; };
union either { int number; float real; };
struct flags { unsigned a : 3; int b : 5; unsigned c : 20; };
struct node { char name[8]; struct point at; struct node *next; enum colour colour; };

int counter = 41;
static const char *greeting = "hello";
static double table[5] = {0.5, 1.5, 2.5};

static int inner(struct node *list, int depth, double scale) {
    signed char tiny = -5;
    unsigned char letter = 'Q';
    bool yes = true;
    short small = -1234;
    unsigned long large = 0xfedcba9876543210;
    float ratio = 0.25f;
    long double wide = 1.75L;
    union either either = {.number = 0x3e800000};
    struct flags flags = {5, -3, 70000};
    int numbers[4] = {1, 2, 3, 4};
    int grid[2][3] = {{1, 2, 3}, {4, 5, 6}};
    int zeroes[40] = {0};
    char text[16] = "some text";
    int *missing = NULL;
    int (*function)(const char *, ...) = printf;
    struct point corner = {depth, 2 * depth};
    counter += depth;
    if (depth > 0) return inner(list->next ? list->next : list, depth - 1, scale * 2);
    printf("%s %d %d %f %f %Lf %d %d %d\n", list->name, tiny, letter, ratio, scale, wide, yes,
           small, flags.b); /* LOOK */
    return (int)large + numbers[1] + grid[1][1] + zeroes[2] + text[0] + corner.x + either.number +
           (missing == NULL) + (function == NULL);
}

int main(int argc, char **argv) {
    struct node second = {"second", {3, 4}, NULL, BLUE};
    struct node first = {"first", {1, 2}, &second, GREEN};
    int sum = 0;
    for (int i = 0; i < 3; i++) {
        int before = sum;
        sum += inner(&first, i, 1.5); /* LOOP */
        sum -= before;
    }
    return sum == argc + (argv == NULL) + (greeting == NULL) + (table[1] > 2);
}
