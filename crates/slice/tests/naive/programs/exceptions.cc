#include <string>

int result;

struct Guard {
    int *at;
    ~Guard() { *at += 5; }
};

struct Failed { int code; };

static int checked(int n, int *noted) {
    Guard guard{noted};
    if (n % 3 == 0) throw Failed{n * 10};
    if (n % 5 == 0) throw std::string("five");
    return n * 2;
}

static int tried(int n, int *noted) {
    int got = 0;
    try {
        got = checked(n, noted);
        if (n > 6) got += 100;
    } catch (const Failed &failed) {
        got = failed.code;
    } catch (const std::string &text) {
        got = text.size();
    }
    return got + 1;
}

// The first exception of all has tables made, for millions of steps.
__attribute__((constructor)) static void first() {
    try {
        throw 1;
    } catch (int) {
    }
}

int main() {
    int noted = 0, sum = 0;
    for (volatile int i = 1; i < 8; i++) sum = sum * 3 + tried(i, &noted);
    result = sum + noted;
    return 0;
}
