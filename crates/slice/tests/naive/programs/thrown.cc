// Branches in front of a throw, in a function that catches it itself, and behind.
int result, noise;

struct Failed { int code; };
struct Other { int code; };

static int divided(int n, int by) {
    if (by == 0) throw Other{n};
    return n / by;
}

static int here(int n) {
    int got = 1;
    try {
        if (n > 2) throw Failed{n};
        got += n;
        if (n == 1) got += divided(n, n - 1);
        got *= 3;
    } catch (const Failed &failed) {
        noise += failed.code;
        if (failed.code > 4) got = 9;
    } catch (const Other &other) {
        got -= other.code;
    }
    int behind = n * 5;
    if (behind % 2) behind++;
    return got + behind;
}

static int again(int n) {
    for (int i = 0; i < 3; i++) {
        try {
            try {
                if (i == n) throw Failed{i};
                n += divided(n, i);
            } catch (const Other &other) {
                if (other.code > 3) throw Failed{other.code};
                n++;
            }
            n += 2;
        } catch (const Failed &failed) {
            n += failed.code;
        }
    }
    return n;
}

// The first exception of all has tables made, for millions of steps.
__attribute__((constructor)) static void first() {
    try {
        throw 1;
    } catch (int) {
    }
}

int main() {
    int sum = 0;
    for (volatile int i = 0; i < 6; i++) sum = sum * 3 + here(i);
    for (volatile int i = 0; i < 6; i++) sum += again(i);
    result = sum;
    return 0;
}
