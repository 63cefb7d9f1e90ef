// SPDX-License-Identifier: Apache-2.0
/* Switches between stacks, by both methods. */
#include "testing.h"

#include <dlfcn.h>
#include <fenv.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "duda/core/crash/trace.h"
#include "duda/core/dthread/context.h"

enum { STACK_BYTES = 256 * 1024, ROUNDS = 1000 };

static const enum context_method methods[] = {CONTEXT_FAST, CONTEXT_UCONTEXT};

struct pair {
    struct context main, own;
    unsigned count;
    bool is_aligned;
    int rounding;
    struct trace trace;
};

static char *map_stack(void)
{
    char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(stack, MAP_FAILED);
    return stack;
}

static void count_up(void *arg)
{
    struct pair *p = arg;
    _Alignas(16) volatile char place[16];
    p->is_aligned = (uintptr_t)place % 16 == 0 && (uintptr_t)__builtin_frame_address(0) % 16 == 0;
    p->rounding = fegetround();
    trace_read(&p->trace);
    for (unsigned i = 1; i < ROUNDS; i++) {
        p->count++;
        context_switch(&p->own, &p->main, false);
    }
    p->count++;
    context_switch(&p->own, &p->main, true);
}

static void open_pair(struct pair *p, enum context_method method, char *stack)
{
    *p = (struct pair){.count = 0};
    context_init_main(&p->main, method);
    context_init(&p->own, method, stack, STACK_BYTES, count_up, p);
}

/* Values in registers stay what they are. */
static void check_rounds(struct pair *p)
{
    unsigned a = 1, b = 2, c = 3, d = 4, e = 5;
    double f = 0.5;
    for (unsigned i = 1; i <= ROUNDS; i++) {
        context_switch(&p->main, &p->own, false);
        assert_int_equal(p->count, i);
        a += 1, b += 2, c += 3, d += 4, e += 5, f += 1;
    }
    assert_int_equal(a + b + c + d + e, 15 + 15 * ROUNDS);
    assert_true(f > ROUNDS && f < ROUNDS + 1);
}

TEST(switches)
{
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        struct pair p;
        char *stack = map_stack();
        if (methods[i] == CONTEXT_FAST && context_choose() != CONTEXT_FAST)
            continue;
        open_pair(&p, methods[i], stack);
        check_rounds(&p);
        assert_true(p.is_aligned);
        context_release(&p.own);
        munmap(stack, STACK_BYTES);
    }
}

/* A new stack begins with the rounding mode of the one that has made it, and each keeps its own. */
TEST(rounding_modes)
{
    struct pair p;
    char *stack = map_stack();
    fesetround(FE_UPWARD);
    open_pair(&p, context_choose(), stack);
    fesetround(FE_TONEAREST);
    context_switch(&p.main, &p.own, false);
    assert_int_equal(p.rounding, FE_UPWARD);
    assert_int_equal(fegetround(), FE_TONEAREST);
    for (unsigned i = 1; i < ROUNDS; i++)
        context_switch(&p.main, &p.own, false);
    context_release(&p.own);
    munmap(stack, STACK_BYTES);
}

/* The unwinder ends where the stack does. */
TEST(stack_traces)
{
    struct pair p;
    char *stack = map_stack();
    open_pair(&p, context_choose(), stack);
    check_rounds(&p);
    assert_in_range(p.trace.n, 2, 12);
    context_release(&p.own);
    munmap(stack, STACK_BYTES);
}

/* Stacks that were left are used again: what sanitizers know of them is gone. */
TEST(stacks_that_are_used_again)
{
    char *stack = map_stack();
    for (unsigned i = 0; i < 100; i++) {
        struct pair p;
        open_pair(&p, context_choose(), stack);
        check_rounds(&p);
        context_release(&p.own);
    }
    munmap(stack, STACK_BYTES);
}
