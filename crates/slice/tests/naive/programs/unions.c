#include <stdint.h>
#include <string.h>

int result;

union mixed { uint64_t whole; uint32_t half[2]; uint16_t parts[4]; uint8_t bytes[8]; double real; };

int main(void) {
    volatile uint64_t seed = 0x1122334455667788;
    union mixed m = {seed}, n;
    m.bytes[3] ^= 0x5a;
    m.parts[2] += m.bytes[0];
    n.real = m.half[1] * 0.25;
    n.bytes[1] = m.bytes[7];
    float f;
    uint32_t bits = m.half[0] >> 9 | 0x3f800000;
    memcpy(&f, &bits, sizeof f);
    result = n.half[1] + m.parts[2] + (int)(f * 100) + (int)n.parts[0];
    return 0;
}
