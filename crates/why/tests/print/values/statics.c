static int state = 1;

void other(void);

int main(void) {
    state += 10;
    other(); /* LOOK */
    return state == 0;
}
