/* A machine that dispatches on a table of functions. */

int result;

struct machine { int at, value, steps; };
typedef int (*operation)(struct machine *, int);

static int load(struct machine *m, int with) { m->value = with; return 1; }
static int add(struct machine *m, int with) { m->value += with; return 1; }
static int jump(struct machine *m, int with) { return m->value < 20 ? with : 1; }
static int stop(struct machine *m, int with) { return 0; }

static const struct { operation run; int with; } program[] = {
    {load, 3}, {add, 4}, {add, 1}, {jump, -2}, {add, 100}, {stop, 0},
};

int main(void) {
    struct machine m = {0};
    for (;;) {
        int by = program[m.at].run(&m, program[m.at].with);
        if (!by) break;
        m.at += by, m.steps++;
    }
    result = m.value * 100 + m.steps;
    return 0;
}
