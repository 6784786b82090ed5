/* What the test program needs of the machine. */
#ifndef CONSOLE_H_
#define CONSOLE_H_

#include <stdint.h>

/* Writes one character. */
void console_put(char c);

/* Ends the program: 0 for success. */
void console_exit(int32_t status);

/* Instructions executed since some moment, as the emulator's clock has them; always 0 where there is none. */
uint64_t console_instructions(void);

#endif  /* CONSOLE_H_ */
