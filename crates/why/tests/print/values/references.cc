struct Pair {
    int first, second;
};

int look(int *&pointer, int (&array)[3], int &number, const char *&text, Pair *&pair) {
    return *pointer + array[1] + number + text[1] + pair->second; /* LOOK */
}

int main() {
    int array[3] = {5, 6, 7};
    int *pointer = array, number = 1;
    const char *text = "text";
    Pair pairs = {1, 2}, *pair = &pairs;
    return look(pointer, array, number, text, pair) == 0;
}
