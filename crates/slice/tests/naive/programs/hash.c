#include <string.h>

int result;
static struct entry { char name[12]; int count; } table[16];

static unsigned hash(const char *s) {
    unsigned h = 5381;
    while (*s) h = h * 33 ^ (unsigned char)*s++;
    return h;
}

static struct entry *find(const char *name) {
    unsigned at = hash(name) % 16;
    while (table[at].count && strcmp(table[at].name, name)) at = (at + 1) % 16;
    return &table[at];
}

int main(void) {
    static const char *words[] = {"to", "be", "or", "not", "to", "be", "that", "is", "the", "to"};
    for (volatile int i = 0; i < 10; i++) {
        struct entry *entry = find(words[i]);
        if (!entry->count++) strncpy(entry->name, words[i], sizeof entry->name - 1);
    }
    result = find("to")->count * 10 + find("the")->count;
    return 0;
}
