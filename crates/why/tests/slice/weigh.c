/* Of what is computed here, little is left where its statements stand. */
#include <stdio.h>
#include <stdlib.h>

__attribute__((noinline)) static int weigh(int a, int b)
{
    int scaled = a * 37; /* scaled */
    int sum = scaled + b; /* summed */
    return sum; /* returned */
}

int main(int argc, char **argv)
{
    int weight = weigh(atoi(argc > 1 ? argv[1] : "5"), argc); /* weighed */
    printf("%d\n", weight); /* printed */
    return 0;
}
