#pragma once
#include <stddef.h>
#include <stdint.h>
#pragma clang assume_nonnull begin

/// libFuzzer as a function, for programs that have a main of their own.
int LLVMFuzzerRunDriver(int *count, char *_Nullable *_Nonnull *_Nonnull arguments,
                        int (*takeInput)(const uint8_t *_Nullable bytes, size_t count));

#pragma clang assume_nonnull end
