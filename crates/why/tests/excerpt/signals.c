/* Handlers: one makes the value, the other one only counts. */
#include <signal.h>
#include <stdio.h>

volatile int made = 1, counted;

static void makes(int number) {
    made = made * 2 + number;
}

static void counts(int number) {
    counted += number;
    raise(SIGUSR1);
}

int main(void) {
    signal(SIGUSR1, makes);
    signal(SIGUSR2, counts);
    for (int i = 0; i < 4; i++) {
        raise(SIGUSR2);
        made += i;
    }
    printf("%d %d\n", made, counted);
    return 0;
}
