#pragma once
#include <stddef.h>
#include <stdint.h>
#pragma clang assume_nonnull begin

/// libFuzzer as a function, for programs that have a main of their own.
int LLVMFuzzerRunDriver(int *count, char *_Nullable *_Nonnull *_Nonnull arguments,
                        int (*takeInput)(const uint8_t *_Nullable bytes, size_t count));

/// What is allocated between the two is not searched for: LeakSanitizer does not follow the pointers of Swift's statics
/// that carry marks in their spare bits.
void __lsan_disable(void);
void __lsan_enable(void);

#pragma clang assume_nonnull end
