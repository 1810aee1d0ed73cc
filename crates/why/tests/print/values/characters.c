unsigned char packet[3] = {0, 'x', 'y'};
char name[16] = "name";
char parts[12] = "a\0b\0c";
char none[4];
int numbers[3] = {5, 6, 7};

int main(void) {
    signed char back = -1;
    unsigned char far = 200;
    int *middle = &numbers[1];
    enum { NEXT = 1 } next = NEXT;
    int many[256] = {[200] = 9};
    return middle[back] + many[far] + middle[next] == 0; /* LOOK */
}
