/* RISC-V virt machine: serial port and test finisher. */
#include "console.h"

static volatile uint8_t* const serial = (volatile uint8_t*)(uintptr_t)0x10000000;
static volatile uint32_t* const finisher = (volatile uint32_t*)(uintptr_t)0x100000;

void console_put(char c) {
    while ((serial[5] & 0x20U) == 0U) {
    }
    serial[0] = (uint8_t)c;
}

uint64_t console_instructions(void) {
    uint32_t low, high, again;
    do {  /* until the high half did not change meanwhile */
        __asm__ volatile(".option push\n.option arch, +zicsr\ncsrr %0, minstreth\ncsrr %1, minstret\ncsrr %2, minstreth\n.option pop" : "=r"(high), "=r"(low), "=r"(again));
    } while (high != again);
    return ((uint64_t)high << 32) | low;
}

void console_exit(int32_t status) {
    *finisher = status == 0 ? 0x5555U : 0x3333U | ((uint32_t)status << 16);
    for (;;) {
    }
}
