#include <stdexcept>

int result;

__attribute__((constructor)) static void first() {
    try {
        throw 1;
    } catch (int) {
    }
}

static int deep(int n) {
    if (n == 0) throw std::out_of_range("deep");
    return deep(n - 1) + 1;
}

static int middle(int n) {
    try {
        return deep(n);
    } catch (const std::runtime_error &) {
        result = -1;
    } catch (const std::exception &) {
        result += n;
        if (n > 2) throw;
    }
    return n;
}

int main() {
    volatile int n = 2;
    int s = 0;
    while (n < 4) {
        try {
            s += middle(n);
        } catch (...) {
            s += 100;
        }
        n++;
    }
    result += s;
    return 0;
}
