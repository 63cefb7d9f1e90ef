// SPDX-License-Identifier: Apache-2.0
/*
 * Stacks of dthreads: 64 KB each (256 KB with a sanitizer), with pages below them that cannot be accessed, so that an
 * overflow is a SIGSEGV there and damages nothing. A worker of a service keeps some that are not used; further ones are
 * given back to the system.
 *
 *     [ guard: 16 KB, PROT_NONE │ stack ◄──── grows ──── │ struct stack ]        2 mappings of the process
 *
 * The kernel limits the mappings of a process (vm.max_map_count). All stacks together take at most half of them.
 */
#ifndef DUDA_CORE_DTHREAD_STACK_H
#define DUDA_CORE_DTHREAD_STACK_H

#include <monkey/base/list.h>

#include <stdint.h>

/* At the top of its memory. */
struct stack {
    struct mk_list node;
    char *base; /* the lowest byte that may be used */
    size_t bytes;
};

/* Of a service in a worker; initialized by stack_pool_init(). */
struct stack_pool {
    struct mk_list idle;
    unsigned n_idle;
};

void stack_pool_init(struct stack_pool *pool);
/* Gives the idle stacks back. */
void stack_pool_release(struct stack_pool *pool);

/* Returns a stack, or NULL with -EAGAIN (stack_limit() are in use in the process) or -ENOMEM in *ret_err. */
struct stack *stack_get(struct stack_pool *pool, int *ret_err);
/* Puts a stack back that does not run any more. */
void stack_put(struct stack_pool *pool, struct stack *stack);

/* Returns how many stacks the process may have. Any thread. */
unsigned stack_limit(void);
/* Returns how many stacks it has, with idle ones. Any thread. */
unsigned stack_count(void);

/* Returns whether an address is in the guard of a stack. Async-signal-safe. */
bool stack_has_guard(const struct stack *stack, uintptr_t address);
/* Returns the size of stacks, in KB. */
unsigned stack_kilobytes(void);

#endif
