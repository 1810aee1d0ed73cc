#include <functional>
#include <memory>

int result;

static std::function<int(int)> adder(int by) { return [by](int n) { return n + by; }; }

struct Counted {
    std::shared_ptr<Counted> next;
    int value;
};

int main() {
    volatile int n = 4;
    std::function<int(int)> f = adder(n), g = [&f](int x) { return f(f(x)) * 2; };
    auto first = std::make_shared<Counted>(), second = std::make_shared<Counted>();
    first->value = g(n);
    second->value = f(first->value);
    second->next = first;
    first.reset();
    std::unique_ptr<int> owned(new int(second->next->value));
    result = *owned + second->value + (int)second->next.use_count();
    return 0;
}
