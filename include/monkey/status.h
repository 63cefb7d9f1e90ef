// SPDX-License-Identifier: Apache-2.0
/*
 * Results and visibility: what every function of this library returns, and how a symbol becomes public.
 *
 * A call that returns `int` answers 0 when it is done, a value above 0 when it is not done yet or not
 * its business, and `-errno` when it failed. A call that moves bytes returns `ssize_t`: the count, 0 for
 * the end, `-errno`. Nothing in this library exits, prints or throws.
 */
#ifndef MONKEY_STATUS_H
#define MONKEY_STATUS_H

#define MK_API __attribute__((visibility("default")))
#define MK_PRINTF(nth, first) __attribute__((format(printf, nth, first)))

/* A buffer or struct of about a KB and more on the stack of a request's path, which is written before it is read:
 * -ftrivial-auto-var-init=zero, which hardened builds have, does not clear it for each call. */
#define MK_UNINITIALIZED __attribute__((uninitialized))

/* A function that prepares for the unlikely: kept out of the hot pages. */
#define MK_COLD __attribute__((cold))

#define MK_LIKELY(x) __builtin_expect(!!(x), 1)
#define MK_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* The struct that holds `member` at address `ptr`. */
#define MK_CONTAINER_OF(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

enum mk_status {
    MK_OK = 0,
    MK_AGAIN = 1,    /* not yet: call again when there is more, or when told */
    MK_DECLINED = 2, /* not mine: ask the next one */
};

#endif
