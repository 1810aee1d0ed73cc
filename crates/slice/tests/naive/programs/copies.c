int result;
static char from[32] = "what is to be copied", to[32];

int main(void) {
    int n = 0;
    while (from[n]) {
        to[n] = from[n];
        n++;
    }
    for (int i = 0, j = n - 1; i < j; i++, j--) {
        char c = to[i];
        to[i] = to[j], to[j] = c;
    }
    for (int i = 0; i < n; i++)
        if (to[i] == 'o') result += i;
    return 0;
}
