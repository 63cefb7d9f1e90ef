// SPDX-License-Identifier: Apache-2.0
/*
 * What it takes to switch to another stack and back: prints nanoseconds for one of the two switches, by each method
 * that this machine has, with the stacks of 1 and of 1,000 dthreads.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "../../duda/core/dthread/context.h"

enum { SWITCHES = 10000000, SLOW_SWITCHES = 1000000, STACK_BYTES = 64 * 1024, STACKS_MAX = 1000 };

static struct context main_context, contexts[STACKS_MAX];

static void switch_back(void *arg)
{
    for (;;)
        context_switch(arg, &main_context, false);
}

static double read_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void measure(const char *name, enum context_method method, unsigned stacks, unsigned switches)
{
    context_init_main(&main_context, method);
    for (unsigned i = 0; i < stacks; i++) {
        void *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (stack == MAP_FAILED)
            abort();
        context_init(&contexts[i], method, stack, STACK_BYTES, switch_back, &contexts[i]);
        context_switch(&main_context, &contexts[i], false);
    }
    double begin = read_clock_ns();
    for (unsigned i = 0, at = 0; i < switches; i++, at = at + 1 == stacks ? 0 : at + 1)
        context_switch(&main_context, &contexts[at], false);
    printf("%-9s %4u stacks: %6.1f ns a switch\n", name, stacks, (read_clock_ns() - begin) / switches / 2);
}

int main(void)
{
    if (context_choose() == CONTEXT_FAST) {
        measure("fast", CONTEXT_FAST, 1, SWITCHES);
        measure("fast", CONTEXT_FAST, STACKS_MAX, SWITCHES);
    }
    measure("ucontext", CONTEXT_UCONTEXT, 1, SLOW_SWITCHES);
    measure("ucontext", CONTEXT_UCONTEXT, STACKS_MAX, SLOW_SWITCHES);
    return 0;
}
