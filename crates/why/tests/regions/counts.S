# Counts in rax: it is n after 2 + 3n instructions, or one or two less.
    .globl _start
_start:
    xor %eax, %eax
    mov $1000000, %ecx
1:  inc %rax
    dec %ecx
    jnz 1b
    xor %edi, %edi
    mov $60, %eax
    syscall
