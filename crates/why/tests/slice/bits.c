/* Members that are smaller than what is written at once. */
static struct {
    unsigned a : 3, b : 5;
    int c : 7;
    unsigned d : 1;
    char tail[2];
} s;

int main(int argc, char **argv) {
    (void)argv;
    s.a = argc; /* a */
    s.tail[0] = argc + 5; /* tail */
    s.b = argc + 16; /* b */
    s.c = argc - 4; /* c */
    return s.b + s.c + s.d + s.tail[0] == 0;
}
