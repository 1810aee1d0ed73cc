// Prints all that the CPU says of itself, and the kernel of it. With the argument `v3`, limited
// to x86-64-v3 by the names that the compiler has for features; with `native`, as it is.

#define _GNU_SOURCE
#include <cpuid.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

static unsigned a, b, c, d;
static int limited;

static uint64_t xgetbv(unsigned which) {
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(which));
    return (uint64_t)high << 32 | low;
}

// Bits of leaf 1 for which there are no names.
enum { FPU_TO_APIC = 0x3ff, SEP_TO_PSE36 = 0x3f800, CLFSH = 1 << 19, SELF_SNOOP = 1 << 27, THREADS = 1 << 28,
       HYPERVISOR = 1u << 31 };
static const unsigned basic = FPU_TO_APIC | SEP_TO_PSE36 | CLFSH | bit_MMX | bit_FXSAVE | bit_SSE | bit_SSE2
                              | SELF_SNOOP | THREADS;

static void limit(unsigned leaf, unsigned subleaf) {
    enum { ERMS = 1 << 9, FSRM = 1 << 4, CMP_LEGACY = 1 << 1, TOPOEXT = 1 << 22 };
    enum { SYSCALL = 1 << 11, NX = 1 << 20, PAGES_1G = 1 << 26, RDTSCP = 1 << 27 };
    switch (leaf) {
    case 1:
        c &= bit_SSE3 | bit_SSSE3 | bit_SSE4_1 | bit_SSE4_2 | bit_FMA | bit_CMPXCHG16B | bit_MOVBE | bit_POPCNT
             | bit_XSAVE | bit_OSXSAVE | bit_AVX | bit_F16C | bit_AES | bit_PCLMUL | HYPERVISOR;
        d &= basic;
        return;
    case 7:
        if (subleaf) break;
        a = 0, b &= bit_FSGSBASE | bit_BMI | bit_AVX2 | bit_BMI2 | ERMS, c = 0, d &= FSRM;
        return;
    case 13:
        if (subleaf == 0) a &= 7, b = c = a & 4 ? 512 + 64 + 256 : 512 + 64, d = 0;
        else if (subleaf != 2) break;
        return;
    case 0x80000001:
        c &= bit_LAHF_LM | bit_ABM | CMP_LEGACY | TOPOEXT;
        d &= FPU_TO_APIC | SEP_TO_PSE36 | bit_MMX | bit_FXSAVE | SYSCALL | NX | PAGES_1G | RDTSCP | bit_LM;
        return;
    case 0x80000007: a = b = c = 0, d &= 1 << 8; return;
    case 0x80000008: b = d = 0; return;
    case 0: case 2: case 4: case 11: case 0x15: case 0x16: case 0x18: case 0x1a: case 0x1f:
    case 0x40000000: case 0x40000001:
    case 0x80000000: case 0x80000002: case 0x80000003: case 0x80000004: case 0x80000005: case 0x80000006:
    case 0x80000019: case 0x8000001d: case 0x8000001e: case 0x80000026:
        return;
    }
    a = b = c = d = 0;
}

static void tell(unsigned leaf, unsigned subleaf) {
    unsigned most, unused;
    __cpuid(leaf & 0x80000000, most, unused, unused, unused);
    int there = leaf <= most || leaf >> 28 == 4;
    __cpuid_count(leaf, subleaf, a, b, c, d);
    if (limited && there) limit(leaf, subleaf);
    if (limited && !there) a = b = c = d = 0;
    printf("%x.%x: %08x %08x %08x %08x\n", leaf, subleaf, a, b, c, d);
}

static void tell_all(unsigned first, unsigned last, unsigned subleaves) {
    for (unsigned leaf = first; leaf <= last; leaf++)
        for (unsigned subleaf = 0; subleaf <= subleaves; subleaf++) tell(leaf, subleaf);
}

// As the kernel has put it: the C library tells something of its own instead.
static unsigned long hint(unsigned long key) {
    char **end = environ;
    while (*end) end++;
    for (unsigned long *at = (unsigned long *)(end + 1); at[0] != AT_NULL; at += 2)
        if (at[0] == key) return at[1];
    return 0;
}

int main(int argc, char **argv) {
    limited = argc > 1 && !strcmp(argv[1], "v3");
    // Some answers are of the CPU that is asked.
    cpu_set_t allowed, one;
    sched_getaffinity(0, sizeof allowed, &allowed);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &allowed)) continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        sched_setaffinity(0, sizeof one, &one);
        printf("cpu %d\n", cpu);
        tell_all(1, 1, 0), tell_all(11, 11, 1), tell_all(0x8000001e, 0x8000001e, 0);
    }
    tell_all(0, 0x30, 3);
    tell_all(13, 13, 63);
    tell_all(0x40000000, 0x40000001, 0);
    tell_all(0x80000000, 0x80000030, 3);
    tell(0x20000000, 0), tell(0xc0000000, 0), tell(0xffffffff, 0);
    uint64_t mask = limited ? 7 : ~0ull;
    printf("xcr0 %llx\n", (unsigned long long)(xgetbv(0) & mask));
    unsigned long hints = hint(AT_HWCAP), more = hint(AT_HWCAP2);
    printf("hints %lx %lx %s\n", limited ? hints & basic : hints, limited ? more & 2 : more,
           (char *)getauxval(AT_PLATFORM));
    return 0;
}
