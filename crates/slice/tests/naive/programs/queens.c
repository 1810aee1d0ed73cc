int result;
static int place[5];

static int place_from(int row) {
    if (row == 5) return 1;
    int found = 0;
    for (int i = 0; i < 5; i++) {
        int j;
        for (j = 0; j < row; j++)
            if (place[j] == i || place[j] - i == row - j || i - place[j] == row - j) break;
        if (j == row) {
            place[row] = i;
            found += place_from(row + 1);
        }
    }
    return found;
}

int main(void) {
    result = place_from(0);
    return 0;
}
