/* What a program says of its own lines: which one, what of it, and the value at its end. */
#include <stdio.h>

static volatile struct {
    int line;
    const char *of;
    long value;
} said[4096];
static volatile int count;

#define SAY(v) (said[count].line = __LINE__, said[count].of = #v, said[count].value = (v), count = count + 1)

static void tell(void) {
    for (int i = 0; i < count; i++) printf("%d %s %ld\n", said[i].line, said[i].of, said[i].value);
}
