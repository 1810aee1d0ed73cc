int result;

static float horner(const float *c, int n, float x) {
    float y = 0;
    while (n--) y = y * x + c[n];
    return y;
}

int main(void) {
    volatile float start = 1.7f;
    static const float c[] = {-3, 0.5, 2, 1}, d[] = {0.5, 4, 3};
    float x = start;
    int steps = 0;
    while (steps < 20) {
        float y = horner(c, 4, x), slope = horner(d, 3, x);
        if (y < 1e-4f && y > -1e-4f) break;
        x -= y / slope;
        steps++;
    }
    unsigned u = x * 1e6f;
    result = u + steps + (long)(x * -1000) + (unsigned char)(x * 50);
    return 0;
}
