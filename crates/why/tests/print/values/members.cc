struct Pair {
    int first, second;
    int get() { return first; }
};

int Pair::*second = &Pair::second;
decltype(nullptr) nothing = nullptr;

int main() {
    Pair pair = {1, 2};
    return pair.*second == pair.get() || nothing;
}
