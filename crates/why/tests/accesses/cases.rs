//! Small programs with their accesses, listed by hand. Every instruction that
//! accesses memory has a label.

/// Code that starts with its first instruction and the stack pointer at `top`, its
/// data, and what it accesses: lines `LABEL KIND PLACE SIZE`.
pub struct Case {
    pub name: &'static str,
    /// Features of the processor.
    pub needs: &'static [&'static str],
    pub code: &'static str,
    pub data: &'static str,
    pub accesses: &'static str,
}

pub const CASES: &[Case] = &[
    Case {
        name: "push and pop",
        needs: &[],
        code: "pushes: push rax
               pushes_word: push ax
               pops_word: pop ax
               pops: pop rbx
               pushes_memory: push qword ptr [rip + value]
               pops_to_memory: pop qword ptr [rip + value]",
        data: "value: .quad 1",
        accesses: "pushes w top-8 8
                   pushes_word w top-10 2
                   pops_word r top-10 2
                   pops r top-8 8
                   pushes_memory r value 8
                   pushes_memory w top-8 8
                   pops_to_memory w value 8
                   pops_to_memory r top-8 8",
    },
    Case {
        // A pop has moved the stack pointer when its operand is addressed by it, a
        // push has not.
        name: "push and pop relative to the stack pointer",
        needs: &[],
        code: "sub rsp, 32
               pops: pop qword ptr [rsp + 8]
               pushes: push qword ptr [rsp + 8]",
        data: "",
        accesses: "pops r top-32 8
                   pops w top-16 8
                   pushes w top-32 8
                   pushes r top-16 8",
    },
    Case {
        name: "calls and returns",
        needs: &[],
        code: "through_memory: call [rip + pointer]
               direct: call function
               lea rax, [rip + cleaning]
               push_argument: push rax
               through_register: call rax
               jmp over
               function: ret
               cleaning: ret 8
               over:",
        data: "pointer: .quad function",
        accesses: "through_memory r pointer 8
                   through_memory w top-8 8
                   function r top-8 8
                   direct w top-8 8
                   function r top-8 8
                   push_argument w top-8 8
                   through_register w top-16 8
                   cleaning r top-16 8",
    },
    Case {
        name: "enter and leave",
        needs: &[],
        code: "lea rbp, [rip + frame + 64]
               enters: enter 32, 0
               leaves: leave
               nests: enter 16, 2
               leaves_again: leave",
        data: "frame: .skip 64",
        accesses: "enters w top-8 8
                   leaves r top-8 8
                   nests r frame+56 8
                   nests w top-24 8
                   nests w top-16 8
                   nests w top-8 8
                   leaves_again r top-8 8",
    },
    Case {
        name: "xlat takes the lowest byte alone",
        needs: &[],
        code: "lea rbx, [rip + table]
               mov rax, 0x123456789abcdec8
               looks_up: xlatb",
        data: "table: .skip 256",
        accesses: "looks_up r table+200 1",
    },
    Case {
        name: "string instructions, once",
        needs: &[],
        code: "lea rsi, [rip + from]
               lea rdi, [rip + to]
               moves: movsq
               moves_byte: movsb
               stores: stosd
               loads: lodsw
               scans: scasb
               compares: cmpsb
               std
               moves_down: movsd
               stores_down: stosb
               cld",
        data: "from: .skip 64\n to: .skip 64",
        accesses: "moves r from 8
                   moves w to 8
                   moves_byte r from+8 1
                   moves_byte w to+8 1
                   stores w to+9 4
                   loads r from+9 2
                   scans r to+13 1
                   compares r from+11 1
                   compares r to+14 1
                   moves_down r from+12 4
                   moves_down w to+15 4
                   stores_down w to+11 1",
    },
    Case {
        name: "rep, forwards",
        needs: &[],
        code: "lea rsi, [rip + from]
               lea rdi, [rip + to]
               mov ecx, 13
               moves: rep movsb
               mov ecx, 3
               stores: rep stosq
               mov ecx, 4
               loads: rep lodsd
               mov ecx, 2
               moves_also: repne movsb",
        data: "from: .skip 64\n to: .skip 64",
        accesses: "moves r from 13
                   moves w to 13
                   stores w to+13 24
                   loads r from+13 16
                   moves_also r from+29 2
                   moves_also w to+37 2",
    },
    Case {
        name: "rep, backwards",
        needs: &[],
        code: "std
               lea rsi, [rip + from + 56]
               lea rdi, [rip + to + 56]
               mov ecx, 3
               moves: rep movsq
               mov ecx, 5
               moves_bytes: rep movsb
               mov ecx, 1
               stores: rep stosw
               cld",
        data: "from: .skip 64\n to: .skip 64",
        accesses: "moves r from+40 24
                   moves w to+40 24
                   moves_bytes r from+28 5
                   moves_bytes w to+28 5
                   stores w to+27 2",
    },
    Case {
        name: "rep that ends early",
        needs: &[],
        code: "lea rdi, [rip + text]
               mov ecx, 6
               mov al, 'c'
               scans: repne scasb
               lea rsi, [rip + text]
               lea rdi, [rip + other]
               mov ecx, 6
               compares: repe cmpsb
               std
               lea rsi, [rip + text + 5]
               lea rdi, [rip + other + 5]
               mov ecx, 6
               compares_down: repe cmpsb
               cld",
        data: "text: .ascii \"abcdef\"\n other: .ascii \"abcdxf\"",
        accesses: "scans r text 3
                   compares r text 5
                   compares r other 5
                   compares_down r text+4 2
                   compares_down r other+4 2",
    },
    Case {
        name: "rep of no iterations",
        needs: &[],
        code: "xor esi, esi
               xor edi, edi
               xor ecx, ecx
               rep movsb
               rep stosq
               repe cmpsb
               repne scasb
               rep lodsb",
        data: "",
        accesses: "",
    },
    Case {
        name: "rep in a loop",
        needs: &[],
        code: "lea rdi, [rip + to]
               mov ebx, 3
               1: mov ecx, ebx
               stores: rep stosb
               dec ebx
               jnz 1b",
        data: "to: .skip 64",
        accesses: "stores w to 3
                   stores w to+3 2
                   stores w to+5 1",
    },
    Case {
        name: "rep with a count and pointers of 32 bits",
        needs: &[],
        code: "mov rdi, 0x7700000000
               lea rax, [rip + to]
               or rdi, rax
               mov rcx, 0x5500000003
               stores: addr32 rep stosw",
        data: "to: .skip 64",
        accesses: "stores w to 6",
    },
    Case {
        name: "read, written and both",
        needs: &["cx16"],
        code: "lea rbx, [rip + value]
               loads: mov eax, [rbx]
               stores: mov [rbx + 8], al
               adds: add word ptr [rbx], 3
               compares: cmp qword ptr [rbx], 0
               tests: test byte ptr [rbx], 1
               inverts: not dword ptr [rbx + 4]
               exchanges: xchg [rbx], rdx
               adds_and_exchanges: lock xadd [rbx + 8], edx
               mov eax, 1
               fails: lock cmpxchg [rbx], rdx
               succeeds: cmpxchg [rbx], rdx
               sixteen: cmpxchg16b [rbx]
               sets: setz [rbx + 3]
               shifts: shld [rbx], rdx, 3",
        data: ".balign 16\n value: .quad 1, 2",
        accesses: "loads r value 4
                   stores w value+8 1
                   adds m value 2
                   compares r value 8
                   tests r value 1
                   inverts m value+4 4
                   exchanges m value 8
                   adds_and_exchanges m value+8 4
                   fails m value 8
                   succeeds m value 8
                   sixteen m value 16
                   sets w value+3 1
                   shifts m value 8",
    },
    Case {
        name: "bits far from their operand",
        needs: &[],
        code: "lea rbx, [rip + bits]
               mov rax, 200
               tests: bt [rbx], rax
               mov rax, -1
               sets: bts [rbx], rax
               mov eax, 100
               resets: btr [rbx + 4], eax
               mov eax, -33
               flips: lock btc [rbx], eax
               mov eax, 0x4000ffec
               tests_word: bt [rbx], ax
               by_constant: bts dword ptr [rbx], 37
               lea rbx, [rip + bits - 8]
               mov rcx, 0x7700000000
               or rbx, rcx
               mov eax, 65
               addr32_tests: bt [ebx], eax",
        data: ".skip 64\n bits: .skip 64",
        accesses: "tests r bits+24 8
                   sets m bits-8 8
                   resets m bits+16 4
                   flips m bits-8 4
                   tests_word r bits-4 2
                   by_constant m bits 4
                   addr32_tests r bits 4",
    },
    Case {
        name: "fs and gs, set by the kernel",
        needs: &[],
        code: "mov eax, 158
               mov edi, 0x1002
               lea rsi, [rip + first]
               syscall
               mov eax, 158
               mov edi, 0x1001
               lea rsi, [rip + second]
               syscall
               from_fs: mov rax, fs:[0]
               mov ebx, 16
               from_gs: mov eax, gs:[rbx + 4]
               to_fs: mov fs:[rbx * 2 - 8], al
               mov ecx, 2
               xor esi, esi
               lea rdi, [rip + third]
               moves: rep movsd es:[rdi], fs:[rsi]
               pushes: push gs:[8]
               xor eax, eax
               mov rbx, -8
               below: mov eax, fs:[rbx]",
        data: ".skip 64\n first: .skip 64\n second: .skip 64\n third: .skip 64",
        accesses: "from_fs r first 8
                   from_gs r second+20 4
                   to_fs w first+24 1
                   moves r first 8
                   moves w third 8
                   pushes r second+8 8
                   pushes w top-8 8
                   below r first-8 4",
    },
    Case {
        name: "fs and gs, set by the program",
        needs: &["fsgsbase"],
        code: "lea rax, [rip + first]
               wrfsbase rax
               lea rax, [rip + second]
               wrgsbase rax
               from_fs: mov rbx, fs:[8]
               from_gs: mov rbx, gs:[16]
               rdfsbase rcx
               through_base: mov al, [rcx + 1]
               mov ecx, 5
               to_gs: mov gs:[ecx], cl",
        data: "first: .skip 64\n second: .skip 64",
        accesses: "from_fs r first+8 8
                   from_gs r second+16 8
                   through_base r first+1 1
                   to_gs w second+5 1",
    },
    Case {
        name: "named, not accessed",
        needs: &[],
        code: "mov eax, 1
               lea rbx, [rax + rax * 8 + 64]
               nop dword ptr [rax]
               nop word ptr [rax + rax + 512]
               prefetcht0 [rax]",
        data: "",
        accesses: "",
    },
    Case {
        name: "addresses of 32 bits",
        needs: &[],
        code: "lea rbx, [rip + value]
               mov rcx, 0x1200000000
               or rbx, rcx
               loads: mov eax, [ebx + 4]
               mov rsi, 0xfffffffc
               wraps: mov [ebx + esi + 8], al
               scaled: mov al, [ebx + esi * 2 + 16]",
        data: "value: .skip 64",
        accesses: "loads r value+4 4
                   wraps w value+4 1
                   scaled r value+8 1",
    },
    Case {
        name: "moved and computed pointers",
        needs: &[],
        code: "lea rbx, [rip + value]
               mov rax, rbx
               add rax, 16
               first: mov cl, [rax]
               mov rdx, rax
               lea rdi, [rdx - 8]
               second: mov [rdi], ecx
               xchg rdi, rsi
               sub rsi, -4
               third: mov [rsi], cx
               mov r8d, 3
               imul r9, r8, 8
               fourth: mov r10, [rbx + r9 + 1]
               mov r11d, 6
               shl r11, 2
               fifth: mov r10b, [rbx + r11 * 1]
               cmp r8, 3
               cmove r12, rbx
               sixth: inc byte ptr [r12 + r8 * 4]
               neg r8
               seventh: mov r13, [rbx + r8 + 32]
               mov al, 9
               movzx r14d, al
               eighth: mov r15d, [rbx + r14 * 2]
               bswap r14d
               bswap r14d
               xor r14, 1
               ninth: mov r15w, [rbx + r14]
               mov eax, 100
               xor edx, edx
               mov ecx, 7
               div ecx
               tenth: mov cl, [rbx + rdx]
               mov ah, 2
               mov al, 1
               movzx eax, ah
               eleventh: mov cl, [rbx + rax]",
        data: "value: .skip 64",
        accesses: "first r value+16 1
                   second w value+8 4
                   third w value+12 2
                   fourth r value+25 8
                   fifth r value+24 1
                   sixth m value+12 1
                   seventh r value+29 8
                   eighth r value+18 4
                   ninth r value+8 2
                   tenth r value+2 1
                   eleventh r value+2 1",
    },
    Case {
        name: "pointers through memory",
        needs: &[],
        code: "first: mov rax, [rip + list]
               second: mov rax, [rax]
               third: mov rax, [rax + 8]
               fourth: mov cl, [rax]
               stores: mov [rsp - 8], rax
               loads: mov rbx, [rsp - 8]
               fifth: mov cl, [rbx + 1]
               pushes: push rbx
               sixth: mov rdx, [rsp]
               pops: pop rsi
               seventh: mov cl, [rsi + 2]
               eighth: movsxd rdi, dword ptr [rip + distance]
               ninth: mov cl, [rsi + rdi]",
        data: "list: .quad node\n node: .quad other, 0\n other: .quad 0, last\n last: .quad 0\n \
               distance: .long -3, 0",
        accesses: "first r list 8
                   second r node 8
                   third r other+8 8
                   fourth r last 1
                   stores w top-8 8
                   loads r top-8 8
                   fifth r last+1 1
                   pushes w top-8 8
                   sixth r top-8 8
                   pops r top-8 8
                   seventh r last+2 1
                   eighth r distance 4
                   ninth r last-3 1",
    },
    Case {
        name: "pointers through vector registers",
        needs: &[],
        code: "lea rax, [rip + value]
               movq xmm0, rax
               movq rbx, xmm0
               first: mov cl, [rbx]
               pointers: movdqu xmm1, [rip + pointers_to_value]
               psrldq xmm1, 8
               movq rsi, xmm1
               second: mov cl, [rsi]
               mov eax, 11
               cvtsi2sd xmm2, eax
               cvttsd2si rdi, xmm2
               third: mov cl, [rbx + rdi]
               movq mm0, rbx
               movq rdx, mm0
               emms
               fourth: mov cl, [rdx + 3]",
        data: "value: .skip 64\n pointers_to_value: .quad value + 1, value + 2",
        accesses: "first r value 1
                   pointers r pointers_to_value 16
                   second r value+2 1
                   third r value+11 1
                   fourth r value+3 1",
    },
    Case {
        // pipe, write and read: what the kernel copies is a pointer.
        name: "pointers that the kernel writes",
        needs: &[],
        code: "mov eax, 22
               lea rdi, [rip + ends]
               syscall
               output: mov edi, [rip + ends + 4]
               lea rsi, [rip + pointer]
               mov edx, 8
               mov eax, 1
               syscall
               input: mov edi, [rip + ends]
               lea rsi, [rip + copy]
               mov eax, 0
               syscall
               lea rbx, [rip + value]
               by_the_result: mov cl, [rbx + rax]
               loads: mov rax, [rip + copy]
               through_it: mov cl, [rax + 1]",
        data: "ends: .long 0, 0\n pointer: .quad value\n copy: .quad 0\n value: .skip 64",
        accesses: "output r ends+4 4
                   input r ends 4
                   by_the_result r value+8 1
                   loads r copy 8
                   through_it r value+1 1",
    },
    Case {
        // The program's own addresses, wherever its instructions are executed.
        name: "code addresses as pointers",
        needs: &[],
        code: "mov eax, 39
               syscall
               behind_the_call: mov bl, [rcx]
               calls: call 1f
               returned_to: nop
               1: pops: pop rax
               reads_it: mov bl, [rax]
               lea rax, [rip + reads_it]
               reads_code: mov ebx, [rax + 1]",
        data: "",
        accesses: "behind_the_call r behind_the_call 1
                   calls w top-8 8
                   pops r top-8 8
                   reads_it r returned_to 1
                   reads_code r reads_it+1 4",
    },
    Case {
        name: "a table of jumps",
        needs: &[],
        code: "mov ebx, 2
               dispatch: jmp [table + rbx * 8]
               zero: jmp over
               one: mov al, 1
               dec ebx
               jmp dispatch
               two: dec ebx
               jmp dispatch
               over: lea rdi, [rip + table]
               jumps: jmp [rdi + 24]
               three: nop",
        data: "table: .quad zero, one, two, three",
        accesses: "dispatch r table+16 8
                   dispatch r table+8 8
                   dispatch r table 8
                   jumps r table+24 8",
    },
    Case {
        name: "a loop over an array",
        needs: &[],
        code: "lea rsi, [rip + array]
               xor ecx, ecx
               xor eax, eax
               1: sums: add eax, [rsi + rcx * 4]
               stores: mov [rsi + rcx * 8 + 32], rax
               inc ecx
               cmp ecx, 3
               jne 1b",
        data: "array: .skip 64",
        accesses: "sums r array 4
                   stores w array+32 8
                   sums r array+4 4
                   stores w array+40 8
                   sums r array+8 4
                   stores w array+48 8",
    },
    Case {
        name: "sizes of x87 and SSE operands",
        needs: &["xsave"],
        code: "lea rbx, [rip + area]
               control: fnstcw [rbx]
               control_back: fldcw [rbx]
               long: fld tbyte ptr [rbx + 16]
               short: fstp dword ptr [rbx + 4]
               integer: fild word ptr [rbx + 2]
               packed: fbstp [rbx + 16]
               state: stmxcsr [rbx]
               state_back: ldmxcsr [rbx]
               scalar: movsd xmm0, [rbx + 8]
               single: addss xmm0, [rbx + 4]
               whole: movaps [rbx + 16], xmm0
               upper: movhps [rbx + 8], xmm0
               save: fxsave64 [rbx]
               restore: fxrstor64 [rbx]
               mov eax, 3
               xor edx, edx
               extended: xsave64 [rbx]",
        data: ".balign 64\n area: .skip 8192",
        accesses: "control w area 2
                   control_back r area 2
                   long r area+16 10
                   short w area+4 4
                   integer r area+2 2
                   packed w area+16 10
                   state w area 4
                   state_back r area 4
                   scalar r area+8 8
                   single r area+4 4
                   whole w area+16 16
                   upper w area+8 8
                   save w area 512
                   restore r area 512
                   extended m area 0",
    },
    Case {
        name: "masked bytes",
        needs: &["avx"],
        code: "mask: movdqu xmm1, [rip + bytes]
               lea rdi, [rip + to]
               stores: maskmovdqu xmm0, xmm1
               stores_also: vmaskmovdqu xmm0, xmm1
               small: movq mm1, [rip + bytes]
               stores_small: maskmovq mm0, mm1
               emms
               pxor xmm1, xmm1
               maskmovdqu xmm0, xmm1",
        data: "bytes: .byte 0x80, 0xff, 0x7f, 0, 0x81, 0, 0, 0x90, 0x91, 0, 0, 0, 0, 0, 0, 0xff\n \
               to: .skip 64",
        accesses: "mask r bytes 16
                   stores w to 2
                   stores w to+4 1
                   stores w to+7 2
                   stores w to+15 1
                   stores_also w to 2
                   stores_also w to+4 1
                   stores_also w to+7 2
                   stores_also w to+15 1
                   small r bytes 8
                   stores_small w to 2
                   stores_small w to+4 1
                   stores_small w to+7 1",
    },
    Case {
        name: "masked moves of AVX",
        needs: &["avx2"],
        code: "lea rbx, [rip + value]
               mask: vmovdqu ymm1, [rip + signs]
               loads: vmaskmovps ymm0, ymm1, [rbx]
               stores: vpmaskmovq [rbx + 32], ymm1, ymm0
               short: vpmaskmovd [rbx + 8], xmm1, xmm0
               vpxor xmm1, xmm1, xmm1
               vpmaskmovd [rax], ymm1, ymm0
               vzeroupper",
        data: "signs: .long -1, 0x80000000, 0, 0x7fffffff, 5, -9, -1, 0\n value: .skip 64",
        accesses: "mask r signs 32
                   loads r value 8
                   loads r value+20 8
                   stores w value+32 8
                   stores w value+48 8
                   short w value+8 8",
    },
    Case {
        // vpgatherqd has fewer elements than its registers have room for.
        name: "gathers of AVX2",
        needs: &["avx2"],
        code: "lea rbx, [rip + value]
               indices: vmovdqu ymm2, [rip + places]
               mask: vmovdqu ymm1, [rip + signs]
               gathers: vpgatherdd ymm0, [rbx + ymm2 * 4], ymm1
               mask_again: vmovdqu ymm1, [rip + signs]
               doubles: vgatherdpd ymm0, [rbx + xmm2 * 8 + 8], ymm1
               quads: vmovdqu ymm2, [rip + far_places]
               mask_once_more: vmovdqu ymm1, [rip + signs]
               narrow: vpgatherqd xmm0, [rbx + ymm2 * 1], xmm1
               vpgatherqd xmm0, [rax + ymm2 * 1], xmm1
               vzeroupper",
        data: "places: .long 3, -2, 1, 7, 3, 0, 0, 5\n far_places: .quad 40, -16, 8, 0\n \
               signs: .long -1, -1, 0, 0x80000000, -1, 0, 0, 0x7fffffff\n .skip 64\n value: .skip 64",
        accesses: "indices r places 32
                   mask r signs 32
                   gathers r value-8 4
                   gathers r value+12 4
                   gathers r value+12 4
                   gathers r value+28 4
                   mask_again r signs 32
                   doubles r value-8 8
                   doubles r value+32 8
                   quads r far_places 32
                   mask_once_more r signs 32
                   narrow r value-16 4
                   narrow r value 4
                   narrow r value+40 4",
    },
    Case {
        name: "masked moves and comparisons of AVX-512",
        needs: &["avx512f", "avx512bw", "avx512vl"],
        code: "lea rbx, [rip + value]
               mov eax, 0x0ff1
               kmovd k1, eax
               stores: vmovdqu32 [rbx + 64] {k1}, zmm0
               loads: vmovups ymm0 {k1} {z}, [rbx]
               compares: vpcmpud k2 {k1}, zmm0, [rbx], 1
               one_for_all: vpcmpeqd k2 {k1}, zmm0, dword ptr [rbx + 8] {1to16}
               mov rax, 0xc000000000000007
               kmovq k3, rax
               bytes: vpcmpeqb k2 {k3}, zmm16, [rbx]
               scalar: vmovsd [rbx + 8] {k3}, xmm17
               whole: vpaddd zmm0 {k1}, zmm0, [rbx]
               kxorq k4, k4, k4
               vmovdqu8 [rax] {k4}, zmm0
               vmovss xmm0 {k4}, [rax]
               last: vpcmpeqd k2 {k4}, zmm0, dword ptr [rbx] {1to16}
               unmasked: vmovdqu64 [rbx], zmm31
               vzeroupper",
        data: ".balign 64\n value: .skip 128",
        accesses: "stores w value+64 4
                   stores w value+80 32
                   loads r value 4
                   loads r value+16 16
                   compares r value 4
                   compares r value+16 32
                   one_for_all r value+8 4
                   bytes r value 3
                   bytes r value+62 2
                   scalar w value+8 8
                   whole r value 64
                   last r value 4
                   unmasked w value 64",
    },
    Case {
        name: "gathers and scatters of AVX-512",
        needs: &["avx512f", "avx512vl"],
        code: "lea rbx, [rip + value]
               indices: vmovdqu64 zmm18, [rip + places]
               mov eax, 0x8005
               kmovw k1, eax
               gathers: vpgatherdd zmm0 {k1}, [rbx + zmm18 * 4]
               mov eax, 0x13
               kmovw k1, eax
               scatters: vscatterdpd [rbx + ymm18 * 8] {k1}, zmm0
               kxorw k1, k1, k1
               vpgatherdd zmm0 {k1}, [rax + zmm18 * 4]
               vzeroupper",
        data: "places: .long 9, 1, -2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 2\n .skip 64\n \
               value: .skip 128",
        accesses: "indices r places 64
                   gathers r value-8 4
                   gathers r value+8 4
                   gathers r value+36 4
                   scatters w value+8 8
                   scatters w value+32 8
                   scatters w value+72 8",
    },
    Case {
        name: "compressed and expanded",
        needs: &["avx512f", "avx512_vbmi2"],
        code: "lea rbx, [rip + value]
               mov rax, 0x8000000000000111
               kmovq k1, rax
               compresses: vpcompressd [rbx] {k1}, zmm0
               expands: vpexpandb zmm0 {k1}, [rbx + 8]
               unmasked: vcompresspd [rbx], zmm0
               kxorq k1, k1, k1
               vpcompressd [rax] {k1}, zmm0
               vzeroupper",
        data: ".balign 64\n value: .skip 128",
        accesses: "compresses w value 12
                   expands r value+8 4
                   unmasked w value 64",
    },
    Case {
        // A recording tells what comes of these, and a replay does not execute them.
        name: "instructions whose results vary",
        needs: &[],
        code: "mov ebx, 3
               lea rbp, [rip + table]
               again: rdtsc
               xor ecx, ecx
               stores: mov [rbp + rcx + 16], eax
               xor eax, eax
               saves: push rbx
               cpuid
               restores: pop rbx
               lea rcx, [rbp + 32]
               tells: sidt [rcx + rbx * 2]
               dec ebx
               jnz again",
        data: "table: .skip 64",
        accesses: "stores w table+16 4
                   saves w top-8 8
                   restores r top-8 8
                   tells w table+38 10
                   stores w table+16 4
                   saves w top-8 8
                   restores r top-8 8
                   tells w table+36 10
                   stores w table+16 4
                   saves w top-8 8
                   restores r top-8 8
                   tells w table+34 10",
    },
    Case {
        // The handler makes the page accessible, spoils the registers, and leaves
        // without touching the frame, whose place depends on the processor.
        name: "rep that is interrupted by a repaired fault",
        needs: &[],
        code: "lea rsi, [rip + action]
               mov edi, 11
               xor edx, edx
               mov r10d, 8
               mov eax, 13
               syscall
               lea rdi, [rip + page]
               mov esi, 4096
               xor edx, edx
               mov eax, 10
               syscall
               lea rsi, [rip + from]
               lea rdi, [rip + page - 5]
               mov ecx, 16
               copies: rep movsb
               behind: mov [rdi], cl
               jmp over
               handler: seen: inc qword ptr [rip + faults]
               lea rdi, [rip + page]
               mov esi, 4096
               mov edx, 3
               mov eax, 10
               syscall
               xor ecx, ecx
               add rsp, 8
               mov eax, 15
               syscall
               over:",
        data: "action: .quad handler, 0x04000000, handler, 0\n faults: .quad 0\n from: .skip 16\n \
               .balign 4096\n .skip 4096\n page: .skip 4096",
        accesses: "copies r from 5
                   copies w page-5 5
                   seen m faults 8
                   copies r from+5 11
                   copies w page 11
                   behind w page+11 1",
    },
    Case {
        name: "faults, repaired and not",
        needs: &[],
        code: "lea rsi, [rip + action]
               mov edi, 11
               xor edx, edx
               mov r10d, 8
               mov eax, 13
               syscall
               lea rdi, [rip + page]
               mov esi, 4096
               xor edx, edx
               mov eax, 10
               syscall
               lea rbx, [rip + page]
               before: mov al, [rbx - 1]
               repaired: add dword ptr [rbx + 4], 1
               behind: mov al, [rbx]
               xor eax, eax
               given_up: mov ecx, [rax]
               not_reached: mov ecx, [rax]
               handler: seen: inc qword ptr [rip + faults]
               rereads: cmp qword ptr [rip + faults], 2
               je gives_up
               lea rdi, [rip + page]
               mov esi, 4096
               mov edx, 3
               mov eax, 10
               syscall
               add rsp, 8
               mov eax, 15
               syscall
               gives_up: lea rsp, [rip + top]
               pushes: push rax",
        data: "action: .quad handler, 0x04000000, handler, 0\n faults: .quad 0\n \
               .balign 4096\n .skip 4096\n page: .skip 4096",
        accesses: "before r page-1 1
                   seen m faults 8
                   rereads r faults 8
                   repaired m page+4 4
                   behind r page 1
                   seen m faults 8
                   rereads r faults 8
                   pushes w top-8 8",
    },
];
