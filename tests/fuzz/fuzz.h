/** A fuzz target: one function, called with any bytes, that must return. libFuzzer calls it
 *  (-DIFD_FUZZ=ON), or standalone.c with every file of a corpus, in every ctest run. */
#ifndef INFERD_TESTS_FUZZ_FUZZ_H
#define INFERD_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/** A property that must hold for every input: stops the process at once, so that the fuzzer keeps
 *  the input. */
#define MUST(condition) ((condition) ? (void)0 : __builtin_trap())

#endif
