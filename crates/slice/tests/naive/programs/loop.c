int result, other;

int main(void) {
    int s = 0, t = 1;
    for (int i = 0; i < 20; i++) {
        if (i % 3)
            s += i;
        else
            t ^= i;
    }
    other = t;
    result = s;
    return 0;
}
