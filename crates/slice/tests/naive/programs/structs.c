struct part { long a, b, c; char name[16]; };
struct large { struct part parts[6]; short tail[7]; };
struct pair { long one, two; };

int result;
static struct part all[4];
static struct large first, second;

static struct part made(long n) {
    struct part it = {n, n * n, 7, "name"};
    it.name[n] = 'x';
    return it;
}

static struct pair swapped(struct pair it) { return (struct pair){it.two, it.one}; }

static long sum(struct large it) {
    long s = it.tail[3];
    for (int i = 0; i < 6; i++) s += it.parts[i].b;
    return s;
}

int main(void) {
    volatile int four = 4;
    for (int i = 0; i < four; i++) all[i] = made(i);
    struct part copy = all[2];
    for (int i = 0; i < 6; i++) first.parts[i] = all[i % four];
    first.tail[3] = four;
    second = first;
    struct pair pair = swapped(swapped((struct pair){copy.a, copy.b}));
    result = copy.b + copy.name[2] + sum(second) + pair.one;
    return 0;
}
