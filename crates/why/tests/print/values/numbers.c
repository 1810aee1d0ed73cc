unsigned __int128 most = ~(unsigned __int128)0;
__int128 least = (__int128)1 << 127;
__float128 quad = 1.5Q;
_Float16 half = 2.5;
long double largest = 1.18973149535723176502e+4932L, smallest = 1e-4000L, tenth = 0.1L;
_Complex double complex = 1.5 + 2.25i;

int main(void) {
    return quad + half + largest == smallest + tenth;
}
