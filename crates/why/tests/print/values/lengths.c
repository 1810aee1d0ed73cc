int sum(int count, int rows[count][2]) {
    int row[count];
    int grid[count][2];
    for (int i = 0; i < count; i++) {
        row[i] = grid[i][0] = grid[i][1] = i * i + rows[i][1]; /* FILL */
    }
    return row[count - 1] + grid[count - 1][1]; /* LOOK */
}

int main(void) {
    int rows[5][2] = {{1, 2}, {3, 4}, {5, 6}, {7, 8}, {9, 10}};
    return sum(5, rows) == 0;
}
