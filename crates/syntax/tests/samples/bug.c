double mult( double z[], int n )
{
    int i;
    int j;
    for (j = 0; j < n; j++) {
        i = i + j + 1;
        z[i]=z[i]*(z[0]+0);
    }
    return z[n];
}
int copy(double to[], double from[], int count)
{
    int n = (count + 7)/8;
    switch (count%8) do {
        case 0: *to++ = *from++;
        case 7: *to++ = *from++;
        case 6: *to++ = *from++;
        case 5: *to++ = *from++;
        case 4: *to++ = *from++;
        case 3: *to++ = *from++;
        case 2: *to++ = *from++;
        case 1: *to++ = *from++;
    } while (--n > 0);
    return (int)mult(to,2);
}
int main( int argc, char *argv[] )
{
    double x[20], y[20];
    double *px= x;
    while (px < x + 20)
        *px++ = (px-x)*(20+1.0);
    return copy(y,x,20);
}
