// SPDX-License-Identifier: Apache-2.0
/*
 * What the functions of this library return, and the attributes of public symbols.
 *
 * A function that returns `int` for success returns 0 (done), a value above 0 (enum mk_status) or -errno. A function
 * that moves bytes returns `ssize_t`: their count, 0 (the end) or -errno. Nothing in this library exits or prints.
 */
#ifndef MONKEY_STATUS_H
#define MONKEY_STATUS_H

/* Around the declarations of a header: programs and plugins may be written in C++17, too (C++20 for MK_PLUGIN and
 * MK_CONF_KEY). */
#ifdef __cplusplus
#define MK_C_BEGIN extern "C" {
#define MK_C_END }
#else
#define MK_C_BEGIN
#define MK_C_END
#endif

/* Libraries that are linked into plugins are built with an empty one, so that each plugin calls its own copy. */
#ifndef MK_API
#define MK_API __attribute__((visibility("default")))
#endif
#define MK_PRINTF(nth, first) __attribute__((format(printf, nth, first)))

/*
 * For a local variable of about 1 KB or more that is written before it is read, in code that runs for each request:
 * hardened builds (-ftrivial-auto-var-init=zero) do not clear it in every call.
 */
#define MK_UNINITIALIZED __attribute__((uninitialized))

/* For a function that runs rarely: it is placed apart from the code that runs for each request. */
#define MK_COLD __attribute__((cold))

/*
 * MK_HOT: for a function that runs for most requests; these are placed next to each other. MK_NOINLINE: for one with a
 * single caller that runs for few; its code is not amid that of the others. So a request needs fewer lines of the
 * processor's cache. Where size counts more, the compiler decides.
 */
#ifdef __OPTIMIZE_SIZE__
#define MK_HOT
#define MK_NOINLINE
#else
#define MK_HOT __attribute__((hot))
#define MK_NOINLINE __attribute__((noinline))
#endif

#define MK_LIKELY(x) __builtin_expect(!!(x), 1)
#define MK_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* Returns the struct of that type whose `member` is at `ptr`. */
#define MK_CONTAINER_OF(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

/* Returns the number of elements of an array, which is not a pointer. */
#define MK_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

enum mk_status {
    MK_OK = 0,
    MK_AGAIN = 1,    /* not done yet; the function says when to call again */
    MK_DECLINED = 2, /* a hook does not handle this request: the next plugin is asked */
};

#endif
