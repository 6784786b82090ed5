/* Console of a hosted machine. */
#include "console.h"

#include <stdio.h>
#include <stdlib.h>

void console_put(char c) {
    putchar(c);
}

void console_exit(int32_t status) {
    exit((int)status);
}

uint64_t console_instructions(void) {
    return 0;
}
