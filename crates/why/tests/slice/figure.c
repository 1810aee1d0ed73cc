/* The statements are numbered as in the thesis. */
static int x, y, z;
int out;

int main(int argc, char **argv) {
    (void)argv;
    int a, b;
    x = 5 + argc; /* 1 */
    y = 1 + argc; /* 2 */
    z = 1 + argc; /* 3 */
    b = 2; /* 4 */
    if (x - y > 0) /* 5 */
        a = x; /* 6 */
    else
        a = y; /* 8 */
    if (x + y > 10) /* 9 */
        b = a; /* 10 */
    if (z * z > 3) /* 11 */
        a = 1; /* 12 */
    else
        a = 2; /* 14 */
    int shown = b; /* 15 */
    out = shown; /* 16 */
    return a;
}
