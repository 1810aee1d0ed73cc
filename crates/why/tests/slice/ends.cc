#include <cassert>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <vector>

static int thrice(int x) { return x * 3; } // thrice

static int kept;

static void handler(int) {
    assert(kept < 9); // in a handler
}

static void check(int x) {
    if (x > 9) // too large
        throw std::runtime_error("too large"); // throw
}

int main(int argc, char **argv) {
    int how = atoi(argv[1]); // how
    int given = atoi(argv[2]); // given
    int made = thrice(given); // made
    std::vector<int> few(3); // few
    printf("%d\n", how); // apart
    if (how == 1) // first
        assert(made < 10); // asserted
    if (how == 2) // second
        check(made); // checked
    if (how == 3 && made > 8) // third
        exit(4); // exit
    if (how == 6) { // sixth
        signal(SIGUSR1, handler); // installed
        kept = made; // kept
        raise(SIGUSR1); // raised
    }
    if (how == 5) // fifth
        exit(made + how); // computed
    return few.at(made); // beyond
}
