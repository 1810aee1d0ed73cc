int result;
static const char *at;

static int sum(void);

static int atom(void) {
    if (*at == '(') {
        at++;
        int value = sum();
        at++;
        return value;
    }
    if (*at == '-') {
        at++;
        return -atom();
    }
    int value = 0;
    while (*at >= '0' && *at <= '9') value = value * 10 + *at++ - '0';
    return value;
}

static int product(void) {
    int value = atom();
    while (*at == '*' || *at == '/') {
        char by = *at++;
        int other = atom();
        value = by == '*' ? value * other : other ? value / other : 0;
    }
    return value;
}

static int sum(void) {
    int value = product();
    while (*at == '+' || *at == '-') value += *at++ == '+' ? product() : -product();
    return value;
}

int main(void) {
    char text[] = "(12+3*(4-6))*7-100/(3+2)--5";
    at = text;
    result = sum();
    return 0;
}
