/* What is written was there before; which of it, and whether at all, was decided. */
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>
static const char yes[] = "yes\n", no[] = "noo\n", more[] = "more\n";

int main(int count, char **arguments)
{
    int x = atoi(arguments[1]);          /* read */
    const char *text = x > 3 ? yes : no; /* chosen */
    int unused = atoi(arguments[2]);     /* other */
    if (write(1, text, 4) != 4) return 1;
    struct iovec parts[2] = {{(char *)yes, 2}, {0}};
    parts[1].iov_base = (char *)(x > 5 ? more : no); /* part */
    parts[1].iov_len = 4;
    if (writev(2, parts, 2) != 6) return 1;
    return unused == count;
}
