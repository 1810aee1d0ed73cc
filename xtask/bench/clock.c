// Asks for the time, as often as the argument says; natively that is a call into
// the vDSO and no system call.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int main(int argc, char **argv) {
  long times = argc > 1 ? atol(argv[1]) : 1000000, backwards = 0;
  struct timespec last = {0, 0}, now;
  for (long i = 0; i < times; i++) {
    if (clock_gettime(CLOCK_MONOTONIC, &now)) return 1;
    backwards += now.tv_sec < last.tv_sec ||
                 (now.tv_sec == last.tv_sec && now.tv_nsec < last.tv_nsec);
    last = now;
  }
  printf("went backwards %ld times\n", backwards);
  return 0;
}
