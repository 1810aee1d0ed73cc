// What an exception leaves is told of nothing that the frames have which it leaves.
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <vector>

struct Part {
    virtual int size() { return 2; }
    virtual ~Part() {}
};
int seen;

__attribute__((noinline)) static int parse(const char *given)
{
    if (!*given)
        throw std::runtime_error("empty"); /* thrown */
    return atoi(given);
}

int main(int argc, char **argv)
{
    std::unique_ptr<Part> part = std::make_unique<Part>(); /* held */
    volatile long room[64] = {argc};
    std::vector<int> all;
    all.push_back(room[0]); /* pushed */
    try {
        seen = parse("");
    } catch (const std::runtime_error &) {
        seen = all[0] + room[0] + part->size(); /* caught */
    }
    return 0;
}
