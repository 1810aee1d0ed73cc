#include <cstdio>

int x = 1;
namespace { int hidden = 33; }
namespace outer {
int x = 2;
inline namespace version { int within = 7; }
int get() {
    return x + within; /* INSIDE */
}
}
struct Counts {
    static int count;
    static constexpr int limit = 130;
    int number;
    Counts() : number(limit) { count++; }
    int get() {
        return count + number; /* METHOD */
    }
};
struct Others {
    static int count;
};
int Counts::count = 10;
int Others::count = 20;
int last = 7;

int main() {
    Counts counts;
    last += hidden;
    std::printf("%d\n", outer::get() + counts.get() + Others::count + last); /* LOOK */
    return 0;
}
