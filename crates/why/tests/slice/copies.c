// A copy moves several members at once.

struct pair {
    int first;
    int second;
};

int sum;

static struct pair
made(int n)
{
    struct pair it = {n, 2 * n}; /* made */
    return it; /* returned */
}

static int
of(struct pair given)
{
    int own = given.second; /* taken */
    return own; /* of */
}

int
main(int argc, char **argv)
{
    struct pair one = made(argc + 7); /* called */
    struct pair other = one; /* copied */
    sum = of(other); /* passed */
    return 0;
}
