/* Runs the model once on the test input, prints the results as bytes, compares them with what is expected. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "@prefix@.h"
#include "console.h"

struct result {
    const void* got;
    const void* expected;
    uint32_t count, size;
    char kind;  /* 'f' for floats, else integers */
};

#include "test_data.h"

static void print(const char* text) {
    for (; *text != '\0'; ++text) console_put(*text);
}

static void print_number(uint64_t number) {
    char digits[21];
    uint32_t at = 20;
    digits[at] = '\0';
    do {
        digits[--at] = (char)('0' + (char)(number % 10U));
        number /= 10U;
    } while (number != 0U);
    print(&digits[at]);
}

static void print_bytes(const uint8_t* data, uint32_t count) {
    static const char digits[] = "0123456789abcdef";
    for (uint32_t i = 0; i < count; ++i) {
        if (i % 8 == 0) console_put(' ');
        console_put(digits[data[i] >> 4]);
        console_put(digits[data[i] & 15]);
    }
}

static double value_of(const void* data, uint32_t index, uint32_t size) {
    if (size == 8) {
        double wide;
        memcpy(&wide, (const uint8_t*)data + 8U * index, sizeof wide);
        return wide;
    }
    float narrow;
    memcpy(&narrow, (const uint8_t*)data + 4U * index, sizeof narrow);
    return (double)narrow;
}

static double magnitude(double x) {
    return x < 0.0 ? -x : x;
}

static uint32_t differences(const struct result* r) {
    uint32_t bad = 0;
    for (uint32_t i = 0; i < r->count; ++i) {
        const size_t at = (size_t)i * r->size;
        if (memcmp((const uint8_t*)r->got + at, (const uint8_t*)r->expected + at, r->size) == 0) continue;
        if (r->kind == 'f' && r->size >= 4) {
            const double a = value_of(r->got, i, r->size), b = value_of(r->expected, i, r->size);
            const double scale = magnitude(b) > 1.0 ? magnitude(b) : 1.0;
            if (magnitude(a - b) <= TOLERANCE * scale) continue;
        }
        ++bad;
    }
    return bad;
}

int main(void) {
    uint32_t bad = 0;
    const uint64_t before = console_instructions();
    const int32_t status = RUN();
    const uint64_t took = console_instructions() - before;
    if (status != 0) {
        print("FAIL: the model returned an error\n");
        console_exit(1);
        return 1;
    }
    for (uint32_t i = 0; i < RESULTS; ++i) {
        print("output");
        print_bytes((const uint8_t*)results[i].got, results[i].count * results[i].size);
        print("\n");
        bad += differences(&results[i]);
    }
    if (took != 0U) {
        print("instructions ");
        print_number(took);
        print("\n");
    }
    print(bad == 0 ? "PASS\n" : "FAIL: results differ\n");
    console_exit(bad == 0 ? 0 : 1);
    return bad == 0 ? 0 : 1;
}
