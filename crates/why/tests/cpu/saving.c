// Saves and restores registers with the bitmap of the first argument, to areas that end where
// the page after them cannot be touched: first those of x87, SSE and AVX, and no more.

#define _GNU_SOURCE
#include <asm/prctl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { PAGE = 4096, SIZE = 512 + 64 + 256, FLAGS = 0x8d5 };

static uint64_t bitmap;
static uint8_t *pages, *area;
static _Alignas(64) uint8_t image[PAGE];
static _Alignas(32) uint8_t pattern[16][32], got[16][32];

#define EACH(m) m(0) m(1) m(2) m(3) m(4) m(5) m(6) m(7) m(8) m(9) m(10) m(11) m(12) m(13) m(14) m(15)
#define LOAD(n) "vmovdqa 32*" #n "+pattern(%%rip), %%ymm" #n "\n"
#define STORE(n) "vmovdqa %%ymm" #n ", 32*" #n "+got(%%rip)\n"
#define ALL "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", \
            "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"

// What the area holds, but for what vendors do differently: the addresses of the last x87
// instruction.
static void show(const char *name, const uint8_t *at, int kept) {
    uint64_t sum = 14695981039346656037u, in_use, compact;
    for (int i = 24; i < SIZE; i++)
        if (i < 28 || (i >= 160 && i < 416) || i >= 576) sum = (sum ^ at[i]) * 1099511628211u;
    memcpy(&in_use, at + 512, 8), memcpy(&compact, at + 520, 8);
    printf("%-10s %016llx in use %llx compact %llx kept %d\n", name, (unsigned long long)sum,
           (unsigned long long)in_use, (unsigned long long)compact, kept);
}

// The instruction with all flags set, and again with none; rax, rdx and rcx are what they were.
#define SAVE(name, text, at, rcx)                                                                  \
    do {                                                                                           \
        memset(at, 0, SIZE);                                                                       \
        int kept = 1;                                                                              \
        for (int i = 0; i < 2; i++) {                                                              \
            uint64_t a = (uint32_t)bitmap, d = bitmap >> 32, c = (uint64_t)(rcx), f = i ? FLAGS : 0, g; \
            __asm__ volatile("fninit\n fld1\n" EACH(LOAD) "push %4\n popfq\n" text "\n pushfq\n pop %3\n fninit" \
                             : "+a"(a), "+d"(d), "+c"(c), "=&r"(g) : "r"(f) : "cc", "rbx", ALL);   \
            kept &= a == (uint32_t)bitmap && d == bitmap >> 32 && c == (uint64_t)(rcx) && (g & FLAGS) == f; \
        }                                                                                          \
        show(name, at, kept);                                                                      \
    } while (0)

// With an address that is made of the registers of the bitmap.
#define SAVE_BY(name, text, low, high)                                                             \
    do {                                                                                           \
        memset(area, 0, SIZE);                                                                     \
        uint64_t a = low, d = high;                                                                \
        __asm__ volatile("fninit\n fld1\n" EACH(LOAD) text "\n fninit" : "+a"(a), "+d"(d) :: "cc", ALL); \
        show(name, area, a == (uint64_t)(low) && d == (uint64_t)(high));                           \
    } while (0)

static void restore(const char *name) {
    memset(got, 1, sizeof got);
    uint64_t a = (uint32_t)bitmap, d = bitmap >> 32;
    __asm__ volatile("vzeroall\n xrstor64 (%%rcx)\n" EACH(STORE) "vzeroupper\n fninit"
                     : "+a"(a), "+d"(d) : "c"(area) : ALL);
    printf("%s restored %d kept %d\n", name, !memcmp(got, pattern, sizeof got),
           a == (uint32_t)bitmap && d == bitmap >> 32);
}

static volatile int faults;
void faulting(void *at, uint64_t low, uint64_t high);
__asm__(".globl faulting\nfaulting: mov %rsi, %rax\n.globl save_here\nsave_here: xsave64 (%rdi)\n"
        ".globl save_behind\nsave_behind: ret\n");
extern char save_here[], save_behind[];

static void handler(int signal, siginfo_t *info, void *context) {
    (void)info;
    greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
    printf("signal %d at the instruction %d, rax and rdx kept %d, rdi %d, rbx %d\n", signal,
           r[REG_RIP] == (greg_t)save_here,
           r[REG_RAX] == (uint32_t)bitmap && r[REG_RDX] == (greg_t)(bitmap >> 32),
           r[REG_RDI] == (greg_t)(area + 64) || r[REG_RDI] == (greg_t)(area - 1), r[REG_RBX] == 0x1234567);
    r[REG_RIP] = (greg_t)save_behind;
    faults++;
}

static void fault(void *at) {
    register uint64_t b __asm__("rbx") = 0x1234567;
    uint64_t a = (uint32_t)bitmap, d = bitmap >> 32;
    __asm__ volatile("call faulting" : "+D"(at), "+S"(a), "+d"(d), "+r"(b) :: "rax", "cc", ALL);
}

int main(int argc, char **argv) {
    bitmap = argc > 1 ? strtoull(argv[1], 0, 0) : ~0ull;
    const char *forms = argc > 2 ? argv[2] : "";
    setvbuf(stdout, 0, _IONBF, 0);
    pages = mmap(0, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(pages + PAGE, PAGE, PROT_NONE);
    area = pages + PAGE - SIZE;
    uint8_t *low = mmap(0, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    mprotect(low + PAGE, PAGE, PROT_NONE);
    low += PAGE - SIZE;
    for (int i = 0; i < (int)sizeof pattern; i++) ((uint8_t *)pattern)[i] = (uint8_t)(i * 7 + 1);
    SAVE("xsave", "xsave (%%rcx)", area, area);
    restore("xsave");
    SAVE("xsave64", "xsave64 (%%rcx)", area, area);
    restore("xsave64");
    if (strstr(forms, "xsavec")) {
        SAVE("xsavec", "xsavec (%%rcx)", area, area);
        restore("xsavec");
        SAVE("xsavec64", "xsavec64 -64(%%rcx)", area, area + 64);
    }
    if (strstr(forms, "xsaveopt")) {
        SAVE("xsaveopt", "xsaveopt (%%rcx)", area, area);
        restore("xsaveopt");
        SAVE("xsaveopt64", "xsaveopt64 (%%rcx)", area, area);
    }
    SAVE("relative", "xsave64 image(%%rip)", image, 0);
    SAVE("absolute", "xsave64 (,%%rcx,8)", area, (uint64_t)area / 8);
    SAVE("32 bits", "xsave64 64(%%ecx)", low, low - 64);
    SAVE("stack", "mov %%rsp, %%rbx\n lea 256(%%rcx), %%rsp\n xsave64 -256(%%rsp)\n mov %%rbx, %%rsp", area, area);
    SAVE("fs", "xsave64 %%fs:(%%rcx)", area, area - (uint8_t *)__builtin_thread_pointer());
    syscall(SYS_arch_prctl, ARCH_SET_GS, pages);
    SAVE("gs", "xsave64 %%gs:64(%%rcx)", area, area - pages - 64);
    // Addresses are bitmaps at the same time, which nobody can limit by hand.
    uint64_t address = (uint64_t)area | 7;
    if (bitmap == 7) {
        SAVE("by rax", "xsave64 (%%rcx)", area, area);
        SAVE("by both", "xsave64 (%%rcx)", area, area);
    } else {
        SAVE_BY("by rax", "xsave64 -7(%%rax)", address, 0);
        SAVE_BY("by both", "xsave64 -7(%%rax,%%rdx,4)", address - 64, 16);
    }
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, 0);
    fault(area + 64);
    fault(area - 1);
    printf("%d faults\n", faults);
    return 0;
}
