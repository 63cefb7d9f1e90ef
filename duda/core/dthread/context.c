// SPDX-License-Identifier: Apache-2.0
/*
 * Switches between stacks (context.h).
 *
 * The routine saves the registers that a called function must preserve, on x86-64 with the control words of the
 * floating-point units, on the stack that is left:
 *
 *     x86-64   sp ─► control words │ r15 r14 r13 r12 rbx rbp │ return address
 *     arm64    sp ─► d8 ... d15 │ x19 ... x28 │ x29 x30
 */
#include "dthread/context.h"

#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

/* As <sanitizer/common_interface_defs.h> and <sanitizer/tsan_interface.h> declare them. */
void __sanitizer_start_switch_fiber(void **fake_stack, const void *bottom, size_t size);
void __sanitizer_finish_switch_fiber(void *fake_stack, const void **ret_bottom, size_t *ret_size);
void *__tsan_get_current_fiber(void);
void *__tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void *fiber);
void __tsan_switch_to_fiber(void *fiber, unsigned flags);

/* Saves the state of the stack that runs, sets *save to it, and continues with the state `to`. */
void duda_context_swap(void **save, void *to) __attribute__((visibility("hidden")));
/* Where a new context begins: calls the function in a register with the argument in another one. */
void duda_context_begin(void) __attribute__((visibility("hidden")));

#if defined(__x86_64__)

/*
 * The jump at the end goes to what `call` has pushed, or to duda_context_begin. A `ret` would do the same, but the
 * processor would predict the return to the function that has called the routine on the stack that is left. `notrack`:
 * the place after a call has no endbr64.
 */
__asm__(".pushsection .text\n"
        ".globl duda_context_swap\n"
        ".hidden duda_context_swap\n"
        ".type duda_context_swap, @function\n"
        ".p2align 4\n"
        "duda_context_swap:\n"
        "    .cfi_startproc\n"
        "    endbr64\n"
        "    pushq %rbp\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    pushq %rbx\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    pushq %r12\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    pushq %r13\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    pushq %r14\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    pushq %r15\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    subq $8, %rsp\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    stmxcsr (%rsp)\n"
        "    fnstcw 4(%rsp)\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    ldmxcsr (%rsp)\n"
        "    fldcw 4(%rsp)\n"
        "    addq $8, %rsp\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    popq %r15\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    popq %r14\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    popq %r13\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    popq %r12\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    popq %rbx\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    popq %rbp\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    popq %rcx\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    .cfi_register rip, rcx\n"
        "    notrack jmp *%rcx\n"
        "    .cfi_endproc\n"
        ".size duda_context_swap, . - duda_context_swap\n"
        ".globl duda_context_begin\n"
        ".hidden duda_context_begin\n"
        ".type duda_context_begin, @function\n"
        ".p2align 4\n"
        "duda_context_begin:\n"
        "    .cfi_startproc\n"
        "    .cfi_undefined rip\n" /* stack traces end here */
        "    endbr64\n"
        "    movq %r12, %rdi\n"
        "    callq *%r13\n"
        "    ud2\n"
        "    .cfi_endproc\n"
        ".size duda_context_begin, . - duda_context_begin\n"
        ".popsection\n");

enum { HAS_FAST = 1 };

/* A thread with a shadow stack has its address in a register; the instruction does nothing where there is none. */
static bool has_shadow_stack(void)
{
    uint64_t at = 0;
    __asm__ volatile("rdsspq %0" : "+r"(at));
    return at != 0;
}

struct frame {
    uint32_t mxcsr;
    uint16_t control, unused;
    void *r15, *r14, *r13, *r12, *rbx, *rbp;
    void (*next)(void);
    void *end[2]; /* the first is where a return address would be */
};

static void *write_frame(char *top, void (*fn)(void *arg), void *arg)
{
    struct frame *f = (struct frame *)(void *)(top - sizeof(*f));
    memset(f, 0, sizeof(*f));
    __asm__("stmxcsr %0\n    fnstcw %1" : "=m"(f->mxcsr), "=m"(f->control));
    f->r12 = arg;
    memcpy(&f->r13, &fn, sizeof(fn));
    f->next = duda_context_begin;
    return f;
}

#elif defined(__aarch64__)

/* hint #34 is "bti c": where branch targets are checked, others than by these places would fault. */
__asm__(".pushsection .text\n"
        ".globl duda_context_swap\n"
        ".hidden duda_context_swap\n"
        ".type duda_context_swap, %function\n"
        ".p2align 4\n"
        "duda_context_swap:\n"
        "    .cfi_startproc\n"
        "    hint #34\n"
        "    sub sp, sp, #160\n"
        "    stp d8, d9, [sp]\n"
        "    stp d10, d11, [sp, #16]\n"
        "    stp d12, d13, [sp, #32]\n"
        "    stp d14, d15, [sp, #48]\n"
        "    stp x19, x20, [sp, #64]\n"
        "    stp x21, x22, [sp, #80]\n"
        "    stp x23, x24, [sp, #96]\n"
        "    stp x25, x26, [sp, #112]\n"
        "    stp x27, x28, [sp, #128]\n"
        "    stp x29, x30, [sp, #144]\n"
        "    mov x9, sp\n"
        "    str x9, [x0]\n"
        "    mov sp, x1\n"
        "    ldp d8, d9, [sp]\n"
        "    ldp d10, d11, [sp, #16]\n"
        "    ldp d12, d13, [sp, #32]\n"
        "    ldp d14, d15, [sp, #48]\n"
        "    ldp x19, x20, [sp, #64]\n"
        "    ldp x21, x22, [sp, #80]\n"
        "    ldp x23, x24, [sp, #96]\n"
        "    ldp x25, x26, [sp, #112]\n"
        "    ldp x27, x28, [sp, #128]\n"
        "    ldp x29, x30, [sp, #144]\n"
        "    add sp, sp, #160\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".size duda_context_swap, . - duda_context_swap\n"
        ".globl duda_context_begin\n"
        ".hidden duda_context_begin\n"
        ".type duda_context_begin, %function\n"
        ".p2align 4\n"
        "duda_context_begin:\n"
        "    .cfi_startproc\n"
        "    .cfi_undefined x30\n"
        "    hint #34\n"
        "    mov x0, x19\n"
        "    blr x20\n"
        "    brk #1\n"
        "    .cfi_endproc\n"
        ".size duda_context_begin, . - duda_context_begin\n"
        ".popsection\n");

enum { HAS_FAST = 1 };

static bool has_shadow_stack(void)
{
    return false;
}

struct frame {
    uint64_t d[8];
    void *x19;
    void (*x20)(void *arg);
    void *x21_to_x29[9];
    void (*x30)(void);
};

static void *write_frame(char *top, void (*fn)(void *arg), void *arg)
{
    struct frame *f = (struct frame *)(void *)(top - sizeof(*f));
    *f = (struct frame){.x19 = arg, .x20 = fn, .x30 = duda_context_begin};
    return f;
}

#else

enum { HAS_FAST = 0 };

static bool has_shadow_stack(void)
{
    return false;
}

static void *write_frame(char *top, void (*fn)(void *arg), void *arg)
{
    return (void)fn, (void)arg, top;
}

void duda_context_swap(void **save, void *to)
{
    (void)save, (void)to;
    abort();
}

#endif

enum context_method context_choose(void)
{
    return HAS_FAST && !has_shadow_stack() ? CONTEXT_FAST : CONTEXT_UCONTEXT;
}

/* ── the beginning ── */

/* Tells AddressSanitizer that the stack of `c` runs now. */
static void finish_switch(struct context *c)
{
    if (MK_HAS_ASAN)
        __sanitizer_finish_switch_fiber(c->fake_stack, NULL, NULL);
}

static void begin_context(void *ctx)
{
    struct context *c = ctx;
    finish_switch(c);
    c->fn(c->arg);
    abort();
}

/* makecontext() passes numbers. */
static void begin_ucontext(unsigned high, unsigned low)
{
    begin_context((void *)(uintptr_t)((uint64_t)high << 32 | low));
}

/* The ucontext_t itself is at the top of the stack. */
static void make_ucontext(struct context *c, char *top)
{
    ucontext_t *u = (ucontext_t *)(void *)(top - (sizeof(*u) + 15) / 16 * 16);
    uint64_t address = (uintptr_t)c;
    getcontext(u);
    u->uc_stack.ss_sp = (void *)(uintptr_t)c->stack;
    u->uc_stack.ss_size = (size_t)((char *)u - (const char *)c->stack);
    u->uc_link = NULL;
    makecontext(u, (void (*)(void))(void *)begin_ucontext, 2, (unsigned)(address >> 32), (unsigned)address);
    c->at = u;
}

void context_init(struct context *c, enum context_method method, void *stack, size_t bytes, void (*fn)(void *arg),
                  void *arg)
{
    char *top = (char *)stack + bytes / 16 * 16;
    assert((uintptr_t)stack % 16 == 0 && (method == CONTEXT_UCONTEXT || HAS_FAST));
    *c = (struct context){.method = method, .stack = stack, .bytes = bytes, .fn = fn, .arg = arg};
    if (MK_HAS_TSAN)
        c->fiber = __tsan_create_fiber(0);
    if (method == CONTEXT_FAST)
        c->at = write_frame(top, begin_context, c);
    else
        make_ucontext(c, top);
}

/* AddressSanitizer wants to know the bounds of a stack that is switched to, also of the thread's own one. */
static void find_bounds(struct context *c)
{
    pthread_attr_t attr;
    void *stack = NULL;
    size_t bytes = 0;
    if (pthread_getattr_np(pthread_self(), &attr) != 0)
        return;
    pthread_attr_getstack(&attr, &stack, &bytes);
    pthread_attr_destroy(&attr);
    c->stack = stack;
    c->bytes = bytes;
}

void context_init_main(struct context *c, enum context_method method)
{
    *c = (struct context){.method = method};
    if (MK_HAS_ASAN)
        find_bounds(c);
    if (MK_HAS_TSAN)
        c->fiber = __tsan_get_current_fiber();
}

void context_release(struct context *c)
{
    if (MK_HAS_TSAN && c->fn)
        __tsan_destroy_fiber(c->fiber);
}

/* ── the switch ── */

static void swap_contexts(struct context *from, const struct context *to)
{
    if (to->method == CONTEXT_FAST) {
        duda_context_swap(&from->at, to->at);
        return;
    }
    ucontext_t own;
    from->at = &own;
    swapcontext(&own, to->at);
}

void context_switch(struct context *from, struct context *to, bool is_last)
{
    if (MK_HAS_ASAN)
        __sanitizer_start_switch_fiber(is_last ? NULL : &from->fake_stack, to->stack, to->bytes);
    if (MK_HAS_TSAN)
        __tsan_switch_to_fiber(to->fiber, 0);
    swap_contexts(from, to);
    finish_switch(from);
}
