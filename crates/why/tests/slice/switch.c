/* What a table of jumps leads to depends on what selects from it. */
int w;

static int select_from(int c, int d) {
    switch (c) { /* selects */
    case 0: w = 11; break;
    case 1: w = d + 2; break;
    case 2: w = 3 * d; break; /* selected */
    case 3: w = d - 4; break;
    case 4: w = 5; break;
    case 5: w = d ^ 6; break;
    case 6: w = 7 + d; break;
    default: w = 0;
    }
    return w;
}

int main(int argc, char **argv) {
    (void)argv;
    volatile int c = 2; /* chosen */
    return select_from(c, argc) == 0;
}
