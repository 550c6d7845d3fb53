// What the generated code needs of a C library. Every call runs in a fresh copy of
// the policy, so memory is handed out and never taken back.
#ifndef PORTCULLIS_STDLIB_H
#define PORTCULLIS_STDLIB_H
#include <stddef.h>

void *malloc(size_t size);
void *realloc(void *old, size_t size);
void free(void *memory);
_Noreturn void abort(void);

#endif
