// SPDX-License-Identifier: Apache-2.0
/*
 * Switches between stacks of one thread. A context is what a stack that does not run continues with.
 *
 *     context_init(&own, stack, bytes, fn, arg)
 *     context_switch(&from, &own, false) ─► fn(arg) ... context_switch(&own, &from, true): it is never run again
 *
 * Methods: CONTEXT_FAST is a routine of a few instructions, for x86-64 and arm64. CONTEXT_UCONTEXT is swapcontext(3) of
 * the C library, which makes two system calls: for other machines, and for threads with a shadow stack (CET), which the
 * routine does not switch. All contexts of a thread use the same method.
 *
 * Each switch is announced to the sanitizers. A context stays with its thread.
 */
#ifndef DUDA_CORE_DTHREAD_CONTEXT_H
#define DUDA_CORE_DTHREAD_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>

enum context_method { CONTEXT_FAST, CONTEXT_UCONTEXT };

struct context {
    enum context_method method;
    void *at; /* the stack pointer, or a ucontext_t on the stack */
    const void *stack;
    size_t bytes;
    void (*fn)(void *arg);
    void *arg;
    void *fake_stack; /* of AddressSanitizer */
    void *fiber;      /* of ThreadSanitizer */
};

/* Returns the method for the calling thread. */
enum context_method context_choose(void);

/* Initializes the context of the stack that runs now. */
void context_init_main(struct context *c, enum context_method method);
/* Initializes a context that calls `fn(arg)` when it is switched to first; `fn` must not return. */
void context_init(struct context *c, enum context_method method, void *stack, size_t bytes, void (*fn)(void *arg),
                  void *arg);
/* Frees what sanitizers hold for a context that is not used any more. */
void context_release(struct context *c);

/* Runs `to`. Returns when `from`, which is the one that runs, is switched to; never if `is_last`. */
void context_switch(struct context *from, struct context *to, bool is_last);

#endif
