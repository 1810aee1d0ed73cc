/* A library with a variable for each thread; what it is called says how it is built. */
static __thread int before = 7;
__thread int VARIABLE = 40;

int *FUNCTION(int add) {
    before += add;
    VARIABLE += before;
    return &VARIABLE;
}
