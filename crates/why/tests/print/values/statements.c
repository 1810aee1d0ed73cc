/* Where a function is called that is inlined, statements of its caller begin of which nothing is
   left, and of the function, too. Both have variables of the same names. */
#include <stdio.h>

static double mean(const int *of, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) {
        double share = of[i] * 1.5;
        sum += share;                              /* SUM */
    }
    return sum / n;
}

int main(int argc, char **argv)
{
    int n = argc + 6, of[4] = {argc, 2, 3, 4};
    double share = 77.5, least;                    /* FIRST */
    n += argc - 1;                                 /* COUNT */
    least = mean(of, 4);
    printf("%d %f %f\n", n, least, share);         /* SHOWN */
    return argv[0] == NULL;
}
