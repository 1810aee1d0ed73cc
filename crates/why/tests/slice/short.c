/* A function that is nothing but one statement, on one line. */
#include <stdlib.h>
static int x, k;
__attribute__((noinline, noclone)) static void set(void) { x = 7; } /* made */

int main(void)
{
    set();  /* called */
    k += x; /* added */
    if (k > 0)
        abort();
    return 0;
}
