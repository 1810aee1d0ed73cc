#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <vector>

int result;

int main() {
    volatile int n = 6;
    std::vector<int> numbers;
    for (int i = 0; i < n; i++) numbers.push_back(i * 5 % 7);
    std::sort(numbers.begin(), numbers.end(), [](int a, int b) { return a > b; });
    std::map<std::string, int> counts;
    for (int number : numbers) counts[number % 2 ? "odd" : "even, and long enough"] += number;
    std::string text = "sum";
    for (auto &[name, count] : counts) text += name.substr(1, 3) + std::string(count % 3, 'x');
    result = std::accumulate(numbers.begin(), numbers.end(), 0) + counts["odd"] * 10 + text.find("x") + text[4];
    return 0;
}
