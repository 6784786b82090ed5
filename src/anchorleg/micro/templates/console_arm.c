/* Arm Cortex-M: vector table, start-up, console by semihosting. */
#include "console.h"

#include <stddef.h>
#include <string.h>

extern uint8_t _data_load[], _data_start[], _data_end[], _bss_start[], _bss_end[], _stack_top[];
int main(void);
void reset_handler(void);
void fault_handler(void);

static intptr_t host_call(intptr_t operation, intptr_t argument) {
    register intptr_t r0 __asm__("r0") = operation;
    register intptr_t r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

void console_put(char c) {
    (void)host_call(0x03, (intptr_t)&c);  /* SYS_WRITEC */
}

void console_exit(int32_t status) {
    const intptr_t block[2] = {0x20026, (intptr_t)status};  /* ADP_Stopped_ApplicationExit */
    (void)host_call(0x20, (intptr_t)block);                 /* SYS_EXIT_EXTENDED */
    for (;;) {
    }
}

/* The first timer counts down, once in 40 ns: the time of 40 instructions under the emulator's -icount shift=0. */
static volatile uint32_t* const timer = (volatile uint32_t*)(uintptr_t)0x40000000;

uint64_t console_instructions(void) {
    return (uint64_t)(UINT32_MAX - timer[1]) * 40U;
}

static void switch_on_floats(void) {
#ifdef __ARM_FP
    *(volatile uint32_t*)(uintptr_t)0xE000ED88 |= 0xF00000U;  /* access to coprocessors 10 and 11 */
    __asm__ volatile("dsb\nisb");
#endif
}

void reset_handler(void) {
    switch_on_floats();
    timer[2] = UINT32_MAX;
    timer[1] = UINT32_MAX;
    timer[0] = 1;
    memcpy(_data_start, _data_load, (size_t)(_data_end - _data_start));
    memset(_bss_start, 0, (size_t)(_bss_end - _bss_start));
    console_exit(main());
}

void fault_handler(void) {
    console_exit(2);
}

typedef union {
    void (*handler)(void);
    void* stack;
} vector;

extern const vector vectors[16];
const vector vectors[16] __attribute__((section(".vectors"), used)) = {
    {.stack = _stack_top},      {.handler = reset_handler}, {.handler = fault_handler}, {.handler = fault_handler},
    {.handler = fault_handler}, {.handler = fault_handler}, {.handler = fault_handler},
};
