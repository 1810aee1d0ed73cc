// Reads a regular file byte by byte, as often as the first argument says,
// starting again at its end. The second argument is the file.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  long times = atol(argv[1]);
  int fd = open(argv[2], O_RDONLY);
  if (fd < 0) return 1;
  unsigned sum = 0;
  for (long i = 0; i < times; i++) {
    unsigned char byte;
    ssize_t got = read(fd, &byte, 1);
    if (got == 0) got = lseek(fd, 0, SEEK_SET) == 0 ? read(fd, &byte, 1) : -1;
    if (got != 1) return 1;
    sum = sum * 31 + byte;
  }
  printf("sum %u\n", sum);
  return 0;
}
