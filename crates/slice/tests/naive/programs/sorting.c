int result;
static int all[16];

static void quick(int *from, int *to) {
    if (to - from < 2) return;
    int pivot = from[(to - from) / 2], *i = from, *j = to - 1;
    while (i <= j) {
        while (*i < pivot) i++;
        while (*j > pivot) j--;
        if (i <= j) {
            int t = *i;
            *i++ = *j;
            *j-- = t;
        }
    }
    quick(from, j + 1);
    quick(i, to);
}

int main(void) {
    volatile int n = 16;
    for (int i = 0; i < n; i++) all[i] = i * 11 % 16 - 4;
    quick(all, all + n);
    for (int i = 0; i < n; i++) result = result * 2 + all[i];
    return 0;
}
