// A CPU-bound program that mixes what real ones do: integer loops with
// unpredictable branches, floating-point matrices, hashing with indirect calls,
// recursion and sorting. Prints one checksum per part; makes no system calls
// while it works. The argument scales the work: 100 is at least 2 s at -O2.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state = 88172645463325252u;

static uint64_t next(void) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

// The longest Collatz chain: branches no predictor learns.
static uint64_t collatz(uint32_t limit) {
  uint64_t best = 0, longest = 0;
  for (uint32_t start = 1; start < limit; start++) {
    uint64_t n = start, steps = 0;
    while (n != 1) {
      n = n & 1 ? 3 * n + 1 : n / 2;
      steps++;
    }
    if (steps > longest) {
      longest = steps;
      best = start;
    }
  }
  return best * 1000 + longest;
}

enum { SIDE = 160 };
static double a[SIDE][SIDE], b[SIDE][SIDE], c[SIDE][SIDE];

static uint64_t matrix(int rounds) {
  for (int i = 0; i < SIDE; i++)
    for (int j = 0; j < SIDE; j++) {
      a[i][j] = (i * 7 + j) % 13;
      b[i][j] = (i + j * 5) % 11;
    }
  double sum = 0;
  for (int round = 0; round < rounds; round++) {
    for (int i = 0; i < SIDE; i++)
      for (int j = 0; j < SIDE; j++) {
        double cell = 0;
        for (int k = 0; k < SIDE; k++) cell += a[i][k] * b[k][j];
        c[i][j] = cell;
      }
    sum += c[round % SIDE][(round * 3) % SIDE];
  }
  return (uint64_t)sum;
}

// A chained hash table whose hash function is chosen at run time.
typedef uint32_t (*hash_fn)(const char *);

static uint32_t fnv(const char *s) {
  uint32_t h = 2166136261u;
  while (*s) h = (h ^ (unsigned char)*s++) * 16777619u;
  return h;
}

static uint32_t djb(const char *s) {
  uint32_t h = 5381;
  while (*s) h = h * 33 + (unsigned char)*s++;
  return h;
}

struct entry {
  struct entry *next;
  uint64_t count;
  char key[16];
};

enum { BUCKETS = 4096 };
static struct entry *table[BUCKETS];

static uint64_t hashing(int words) {
  hash_fn functions[2] = {fnv, djb};
  uint64_t entries = 0, sum = 0;
  for (int i = 0; i < words; i++) {
    char key[16];
    uint32_t word = next() % 20000;
    int length = 0;
    do key[length++] = 'a' + word % 26; while ((word /= 26));
    key[length] = 0;
    hash_fn hash = functions[length & 1];
    struct entry **slot = &table[hash(key) % BUCKETS];
    while (*slot && strcmp((*slot)->key, key)) slot = &(*slot)->next;
    if (!*slot) {
      *slot = calloc(1, sizeof **slot);
      strcpy((*slot)->key, key);
      entries++;
    }
    sum += ++(*slot)->count;
  }
  return sum + entries;
}

static uint64_t queens(unsigned all, unsigned columns, unsigned left, unsigned right) {
  if (columns == all) return 1;
  uint64_t found = 0;
  unsigned free_places = all & ~(columns | left | right);
  while (free_places) {
    unsigned place = free_places & -free_places;
    free_places ^= place;
    found += queens(all, columns | place, (left | place) << 1, (right | place) >> 1);
  }
  return found;
}

static int by_value(const void *x, const void *y) {
  uint32_t p = *(const uint32_t *)x, q = *(const uint32_t *)y;
  return (p > q) - (p < q);
}

static uint64_t sorting(unsigned length) {
  uint32_t *values = malloc(length * sizeof *values);
  for (unsigned i = 0; i < length; i++) values[i] = next();
  qsort(values, length, sizeof *values, by_value);
  uint64_t sum = 0;
  for (unsigned i = 0; i < length; i++) sum = sum * 31 + values[i];
  free(values);
  return sum;
}

int main(int argc, char **argv) {
  unsigned scale = argc > 1 ? strtoul(argv[1], NULL, 10) : 100;
  printf("collatz %llu\n", (unsigned long long)collatz(40000u * scale));
  printf("matrix  %llu\n", (unsigned long long)matrix(1 + 2 * scale));
  printf("hashing %llu\n", (unsigned long long)hashing(160000 * scale));
  uint64_t solutions = 0;
  for (unsigned i = 0; i < 1 + scale / 3; i++) solutions += queens((1u << 12) - 1, 0, 0, 0);
  printf("queens  %llu\n", (unsigned long long)solutions);
  printf("sorting %llu\n", (unsigned long long)sorting(80000u * scale));
  return 0;
}
