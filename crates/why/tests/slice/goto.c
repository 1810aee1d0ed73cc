/* Where a jump leads is only known once it is executed: its table is made by the run. */
int w, after;

static void select_from(int c, int d) {
    static void *const LABELS[] = {&&zero, &&one, &&two, &&three};
    void *volatile table[4];
    for (int i = 0; i < 4; i++) table[i] = LABELS[3 - i];
    goto *table[c]; /* selects */
zero:
    w = 11;
    goto behind;
one:
    if (d > 100) w = 9; /* tested */
    w = d > 1 ? 3 * d : d + 2; /* selected */
    goto behind;
two:
    w = 5;
    goto behind;
three:
    w = d ^ 6;
behind:
    after = d; /* met */
}

int main(void) {
    volatile int c = 2, d = 7; /* chosen */
    for (int i = 0; i < 3; i++) select_from(c, d);
    return w == 0;
}
