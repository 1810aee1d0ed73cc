/* Variables that each thread has for itself: of the program, of libraries that it is linked with,
   and of one that it loads while it runs. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

static __thread int own = 1;
__thread char own_text[10] = "main";
static __thread long own_zero;
__thread _Alignas(64) struct { int x, y; } aligned = { 3, 4 };

int *linked(int add);
int *early(int add);
static int *(*loaded)(int);

static void look(int number) {
    own += number;
    own_zero -= number;
    own_text[0] += number;
    aligned.y *= 2 + number;
    int sum = *linked(number) + *early(number) + *loaded(number);
    printf("%d %d\n", number, sum); /* LOOK */
}

static void *thread(void *unused) {
    look(5);
    return unused;
}

int main(int argc, char **argv) {
    void *library = dlopen(argv[1], RTLD_NOW);
    if (!library) return 1;
    loaded = (int *(*)(int))dlsym(library, "loaded");
    look(1);
    pthread_t other;
    pthread_create(&other, NULL, thread, NULL);
    pthread_join(other, NULL);
    return argc == 2 ? 0 : 2;
}
