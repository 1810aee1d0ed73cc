struct fields { unsigned a : 3, b : 7, c : 1; int d : 12; unsigned long long e : 40, f : 20; };

int result;

static void fill(struct fields *at, int n) {
    at->a = n;
    at->b = n * 9;
    at->c = n & 1;
    at->d = -n;
    at->e += n * 1000003ull;
    at->f = at->e >> 7;
}

int main(void) {
    struct fields all[5] = {0};
    for (volatile int i = 0; i < 5; i++) fill(&all[i], i + 3);
    int s = 0;
    for (int i = 0; i < 5; i++) s += all[i].a * all[i].b + all[i].c - all[i].d + all[i].f % 91;
    result = s;
    return 0;
}
