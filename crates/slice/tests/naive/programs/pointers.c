int result, noise;

static int twice(int n) { return 2 * n; }
static int half(int n) { noise++; return n / 2; }
static int third(int n) { return n / 3 + noise; }

static int (*table[3])(int) = {twice, half, third};

struct node { struct node *next; int (*change)(int); int value; };

int main(void) {
    int n = 3;
    for (int i = 0; i < 9; i++) n += table[i % 3](n);
    struct node nodes[5];
    for (int i = 0; i < 5; i++)
        nodes[i] = (struct node){i < 4 ? &nodes[i + 1] : 0, table[i % 3], i * n};
    int **indirect, *direct = &n;
    indirect = &direct;
    for (struct node *at = nodes; at; at = at->next) **indirect += at->change(at->value);
    result = n;
    return 0;
}
