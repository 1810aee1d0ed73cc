/* A slice in very many stretches, and one in few. */
volatile unsigned sum, other, few;

int main(int count, char **words) {
    few = count; /* few */
    for (unsigned i = 0; i < 60000; i++) {
        sum += i;
        other ^= sum;
        sum ^= 3;
        other += i;
    }
    return other == 7 && words;
}
