#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace shop {
struct Base {
    int id = 3;
    virtual ~Base() {}
    virtual double price() const = 0;
};
class Item : public Base {
public:
    Item(std::string name, double value) : name_(std::move(name)), value_(value) {}
    double price() const override;
    std::string name_;
private:
    double value_;
};
double Item::price() const {
    double rebate = value_ / 4;
    return value_ - rebate; /* LOOK */
}
static int sold = 12;
template <typename T> T twice(const T &value) {
    T result = value + value;
    return result; /* TWICE */
}
}

static double total(const std::vector<std::unique_ptr<shop::Item>> &items, int &count) {
    double sum = 0;
    for (auto &item : items) {
        sum += item->price();
        count++;
    }
    return shop::twice(sum); /* TOTAL */
}

int main() {
    std::vector<std::unique_ptr<shop::Item>> items;
    items.push_back(std::make_unique<shop::Item>("lamp", 12.0));
    items.push_back(std::make_unique<shop::Item>("chair, quite long so that it is on the heap", 40.0));
    int count = 0;
    auto print = [&](const char *what) {
        std::printf("%s %d\n", what, count + shop::sold); /* LAMBDA */
    };
    double sum = total(items, count);
    print("items");
    return sum > 1000;
}
