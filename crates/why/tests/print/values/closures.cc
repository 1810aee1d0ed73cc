// Lines that have lambdas: some are called by the line itself, and one by a later one.
#include <algorithm>
#include <vector>

int many, added;

int main(int argc, char **) {
    std::vector<int> all{1, 5, 7, 2};
    int least = argc + 2;
    many = -1;
    int found = std::count_if(all.begin(), all.end(), [&](int one) { return one > least; }); // FOUND
    many = found;
    auto add = [&](int more) { added += more + least; }; // ADD
    add(1);
    for (int turn = 0; turn < 2; turn++) {
        int over = std::count_if(all.begin(), all.end(), [&](int one) { return one > turn + 4; }); // OVER
        many += over;
    }
    return many;
}
