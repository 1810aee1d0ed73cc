/* Has a constant of its own, reads a byte, and one of a file that it is given. */
#include <fcntl.h>
#include <unistd.h>
char constant, of_input, of_file;
static volatile const char constants[4] = "abc";

int main(int count, char **arguments)
{
    char byte, other;
    if (read(0, &byte, 1) != 1) return 1;
    if (count > 1 && read(open(arguments[1], O_RDONLY), &other, 1) != 1) return 1;
    constant = constants[1]; /* constant */
    of_input = byte;         /* input */
    if (count > 1) of_file = other; /* file */
    return 0;
}
