int result;

enum state { Outside, Word, Number, Text };

int main(void) {
    volatile const char *line = "let x1 = 42 + \"a 7\" - y;";
    enum state state = Outside;
    int words = 0, numbers = 0, sum = 0, value = 0;
    for (; *line; line++) {
        char c = *line;
        int letter = (c | 32) >= 'a' && (c | 32) <= 'z', digit = c >= '0' && c <= '9';
        switch (state) {
        case Outside:
            if (letter) state = Word, words++;
            else if (digit) state = Number, numbers++, value = c - '0';
            else if (c == '"') state = Text;
            break;
        case Word:
            if (!letter && !digit) state = Outside;
            break;
        case Number:
            if (digit) value = value * 10 + c - '0';
            else state = Outside, sum += value;
            break;
        case Text:
            if (c == '"') state = Outside;
        }
    }
    result = words * 10000 + numbers * 1000 + sum;
    return 0;
}
