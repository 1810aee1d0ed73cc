// The cheapest system call, as often as the argument says.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv) {
  long times = argc > 1 ? atol(argv[1]) : 1000000, same = 0;
  pid_t parent = getppid();
  for (long i = 0; i < times; i++) same += getppid() == parent;
  printf("same parent %ld times\n", same);
  return 0;
}
