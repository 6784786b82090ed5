/* RISC-V: stack, cleared memory, main. */
    .section .init
    .global _start
_start:
    la sp, _stack_top
    la tp, _tls_start
    la t0, _bss_start
    la t1, _bss_end
1:  bgeu t0, t1, 2f
    sw zero, 0(t0)
    addi t0, t0, 4
    j 1b
2:  la t0, trap
    .option arch, +zicsr
    csrw mtvec, t0
    call main
    call console_exit
    .balign 4
trap:
    li a0, 2
    call console_exit
