int result;

struct Shape {
    int scale = 1;
    virtual ~Shape() {}
    virtual int area() const = 0;
    virtual void grow(int by) { scale += by; }
};

struct Square : Shape {
    int side;
    Square(int side) : side(side) {}
    int area() const override { return side * side * scale; }
};

struct Box final : Square {
    int height;
    Box(int side, int height) : Square(side), height(height) {}
    int area() const override { return 2 * Square::area() + 4 * side * height; }
    void grow(int by) override { height += by; }
};

int main() {
    volatile int n = 3;
    Square square(n);
    Box box(n + 1, 2);
    Shape *shapes[] = {&square, &box, &square};
    for (Shape *shape : shapes) {
        shape->grow(n);
        result += shape->area();
    }
    return 0;
}
