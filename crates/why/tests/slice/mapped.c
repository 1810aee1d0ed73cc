/* Reads one file and maps another. */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
int of_read, of_mapped;

int main(int count, char **arguments)
{
    char bytes[4];
    if (count < 3 || read(open(arguments[1], O_RDONLY), bytes, 4) != 4) return 1;
    char *map = mmap(0, 4096, PROT_READ, MAP_PRIVATE, open(arguments[2], O_RDONLY), 0);
    of_read = bytes[1];  /* read */
    of_mapped = map[14]; /* mapped */
    return 0;
}
