struct Base {
    int id;
};
struct Left : virtual Base {
    int left;
};
struct Right : virtual Base {
    int right;
};
struct Both : Left, Right {
    int own;
};

__attribute__((noinline)) int look(Both &both, Right &right) {
    return both.id + right.right; /* LOOK */
}

int main() {
    Both both;
    both.left = 8;
    both.right = 9;
    both.own = 10;
    both.id = 4; /* MADE */
    return look(both, both) == 0;
}
