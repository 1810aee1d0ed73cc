#include <stdio.h>

static int outer(int z) {
    int sum = z;
    int add(int by) {
        int twice(void) {
            return 2 * (sum + by); /* DEEP */
        }
        sum += by;
        return twice() + sum; /* LOOK */
    }
    int v = add(3);
    return v + sum;
}

int main(void) {
    printf("%d\n", outer(4));
    return 0;
}
