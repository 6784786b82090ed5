/* RISC-V virt machine: serial port and test finisher. */
#include "console.h"

static volatile uint8_t* const serial = (volatile uint8_t*)(uintptr_t)0x10000000;
static volatile uint32_t* const finisher = (volatile uint32_t*)(uintptr_t)0x100000;

void console_put(char c) {
    while ((serial[5] & 0x20U) == 0U) {
    }
    serial[0] = (uint8_t)c;
}

void console_exit(int32_t status) {
    *finisher = status == 0 ? 0x5555U : 0x3333U | ((uint32_t)status << 16);
    for (;;) {
    }
}
