// SPDX-License-Identifier: Apache-2.0
/*
 * Stack traces (trace.h), with the unwinder of libgcc. It is linked statically (duda.cmake): <execinfo.h> would load
 * libgcc_s, which a handler of a signal must not do.
 */
#include "crash/trace.h"

#include <stdbool.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

/* ── registers ── */

#if defined(__x86_64__)

static uintptr_t get_pc(const ucontext_t *c)
{
    return (uintptr_t)c->uc_mcontext.gregs[REG_RIP];
}

static uintptr_t get_stack(const ucontext_t *c)
{
    return (uintptr_t)c->uc_mcontext.gregs[REG_RSP];
}

/* Undoes the call that has led to the address. */
static void undo_call(ucontext_t *c)
{
    c->uc_mcontext.gregs[REG_RIP] = *(greg_t *)get_stack(c);
    c->uc_mcontext.gregs[REG_RSP] += (greg_t)sizeof(greg_t);
}

#elif defined(__aarch64__)

static uintptr_t get_pc(const ucontext_t *c)
{
    return (uintptr_t)c->uc_mcontext.pc;
}

static uintptr_t get_stack(const ucontext_t *c)
{
    return (uintptr_t)c->uc_mcontext.sp;
}

static void undo_call(ucontext_t *c)
{
    c->uc_mcontext.pc = c->uc_mcontext.regs[30];
}

#else

static uintptr_t get_pc(const ucontext_t *c)
{
    return (void)c, 0;
}

static uintptr_t get_stack(const ucontext_t *c)
{
    return (void)c, 0;
}

static void undo_call(ucontext_t *c)
{
    (void)c;
}

#endif

/* ── the stack ── */

static bool is_mapped(uintptr_t address)
{
    unsigned char resident;
    uintptr_t page = address & ~(uintptr_t)(sysconf(_SC_PAGESIZE) - 1);
    return mincore((void *)page, 1, &resident) == 0;
}

static _Unwind_Reason_Code add_frame(struct _Unwind_Context *context, void *ctx)
{
    struct trace *t = ctx;
    uintptr_t address = _Unwind_GetIP(context);
    if (t->n == TRACE_FRAMES_MAX || !address)
        return _URC_END_OF_STACK;
    t->frames[t->n++] = address;
    return _URC_NO_REASON;
}

void trace_read(struct trace *t)
{
    t->first = t->n = 0;
    _Unwind_Backtrace(add_frame, t);
}

/* Reads the stack, and leaves out the frames of the handler. */
static void read_from(struct trace *t, uintptr_t pc)
{
    trace_read(t);
    for (int i = 0; i < t->n; i++) {
        if (t->frames[i] == pc)
            t->first = i;
    }
}

/*
 * The program counter is at an address without code, which the unwinder would read: a null pointer was called, or code
 * was unmapped that still runs. If it was called, the caller is on the stack.
 */
static void unwind_from_return_address(struct trace *t, ucontext_t *c)
{
    const ucontext_t before = *c;
    if (is_mapped(get_stack(c)))
        undo_call(c);
    if (is_mapped(get_pc(c)))
        read_from(t, get_pc(c));
    if (t->first > 0)
        t->frames[--t->first] = get_pc(&before); /* in the place of a frame of the handler */
    else
        *t = (struct trace){.frames = {get_pc(&before)}, .n = 1};
    *c = before;
}

void trace_read_signal(struct trace *t, void *context)
{
    ucontext_t *c = context;
    *t = (struct trace){.n = 0};
    if (is_mapped(get_pc(c)))
        read_from(t, get_pc(c));
    else
        unwind_from_return_address(t, c);
}
