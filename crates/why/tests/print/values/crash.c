int total = 5;

int fail(int *where) {
    int value = 3;
    *where = value;
    return value + total;
}

int main(void) {
    return fail(0);
}
