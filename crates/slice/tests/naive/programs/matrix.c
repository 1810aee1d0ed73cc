int result;
static int a[6][6], b[6][6], c[6][6];

int main(void) {
    volatile int n = 6;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) a[i][j] = i + j, b[i][j] = i * j - 1;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            for (int k = 0; k < n; k++) c[i][j] += a[i][k] * b[k][j];
    result = c[2][3] - c[5][0];
    return 0;
}
