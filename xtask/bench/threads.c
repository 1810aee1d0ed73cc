// Four threads that compute, and meet at a mutex now and then. Whatever the
// schedule, the sum is the same. The argument scales the work: 100 is at least
// 2 s of CPU time at -O2.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t total;
static int scale;

static void *work(void *argument) {
  uint64_t x = (uintptr_t)argument + 1;
  for (int round = 0; round < 160 * scale; round++) {
    uint64_t sum = 0;
    for (int i = 0; i < 20000; i++) {
      x ^= x << 13;
      x ^= x >> 7;
      x ^= x << 17;
      sum += x % 3 == 0 ? x >> 40 : x & 7;
    }
    pthread_mutex_lock(&lock);
    total += sum;
    pthread_mutex_unlock(&lock);
  }
  return NULL;
}

int main(int argc, char **argv) {
  scale = argc > 1 ? atoi(argv[1]) : 100;
  pthread_t threads[4];
  for (uintptr_t i = 0; i < 4; i++) pthread_create(&threads[i], NULL, work, (void *)i);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  printf("total %llu\n", (unsigned long long)total);
  return 0;
}
