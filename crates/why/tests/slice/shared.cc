/* One thread writes under a lock what another one reads under it. */
#include <mutex>
#include <shared_mutex>
#include <thread>

static std::shared_mutex lock;
static int written;
int outcome;

static void writes() {
    std::unique_lock<std::shared_mutex> own(lock);
    written = 14; /* writes */
}

int main() {
    std::thread other(writes);
    for (;;) {
        std::shared_lock<std::shared_mutex> own(lock);
        if (written) {
            outcome = written + 1; /* reads */
            break;
        }
    }
    other.join();
    return 0;
}
