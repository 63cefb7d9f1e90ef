// SPDX-License-Identifier: Apache-2.0
/*
 * Maps stacks (stack.h).
 */
#include "dthread/stack.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    IS_SANITIZED = MK_HAS_ASAN || MK_HAS_MSAN || MK_HAS_TSAN, /* frames are larger */
    STACK_BYTES = (IS_SANITIZED ? 256 : 64) * 1024,
    /* More than a page, because a function with a large array may not touch the first one below the stack. A multiple
     * of all sizes of pages up to 16 KB; where they are larger, a page. */
    GUARD_BYTES = 16 * 1024,
    IDLE_MAX = 64,
    MAPPINGS_PER_STACK = 2,
    DEFAULT_MAPPINGS = 65530, /* of the kernel */
};

/* As <sanitizer/asan_interface.h> declares it. */
void __asan_unpoison_memory_region(const volatile void *p, size_t size);

/* The limit of the kernel is one of the process, too. */
static _Atomic unsigned in_process;
static _Atomic unsigned limit;

static unsigned read_limit(void)
{
    unsigned long mappings = DEFAULT_MAPPINGS;
    FILE *file = fopen("/proc/sys/vm/max_map_count", "re");
    if (file && fscanf(file, "%lu", &mappings) != 1)
        mappings = DEFAULT_MAPPINGS;
    if (file)
        fclose(file);
    unsigned long n = mappings / 2 / MAPPINGS_PER_STACK;
    return n > 1000000 ? 1000000 : (unsigned)n;
}

unsigned stack_limit(void)
{
    unsigned n = atomic_load_explicit(&limit, memory_order_relaxed);
    if (!n) {
        n = read_limit();
        atomic_store_explicit(&limit, n, memory_order_relaxed);
    }
    return n;
}

unsigned stack_count(void)
{
    return atomic_load_explicit(&in_process, memory_order_relaxed);
}

unsigned stack_kilobytes(void)
{
    return STACK_BYTES / 1024;
}

static size_t get_guard_bytes(void)
{
    long page = sysconf(_SC_PAGESIZE);
    return page > GUARD_BYTES ? (size_t)page : GUARD_BYTES;
}

static struct stack *map_stack(void)
{
    size_t guard = get_guard_bytes();
    char *memory =
        mmap(NULL, guard + STACK_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    if (mprotect(memory + guard, STACK_BYTES, PROT_READ | PROT_WRITE) < 0) {
        munmap(memory, guard + STACK_BYTES);
        return NULL;
    }
    char *base = memory + guard;
    struct stack *stack = (struct stack *)(void *)(base + STACK_BYTES - sizeof(*stack));
    *stack = (struct stack){.base = base, .bytes = (size_t)((char *)stack - base)};
    mk_list_init(&stack->node);
    return stack;
}

/* Frames that will not be resumed are poisoned. */
static void clean_stack(struct stack *stack)
{
    if (MK_HAS_ASAN)
        __asan_unpoison_memory_region(stack->base, stack->bytes);
}

static void unmap_stack(struct stack *stack)
{
    assert(stack_count() > 0);
    size_t guard = get_guard_bytes();
    clean_stack(stack);
    munmap(stack->base - guard, guard + STACK_BYTES);
    atomic_fetch_sub_explicit(&in_process, 1, memory_order_relaxed);
}

void stack_pool_init(struct stack_pool *pool)
{
    mk_list_init(&pool->idle);
    pool->n_idle = 0;
}

void stack_pool_release(struct stack_pool *pool)
{
    while (!mk_list_empty(&pool->idle)) {
        struct stack *stack = MK_LIST_FIRST(&pool->idle, struct stack, node);
        mk_list_del(&stack->node);
        unmap_stack(stack);
    }
    pool->n_idle = 0;
}

/* The one that was used last, whose pages are in the caches. */
static struct stack *take_idle(struct stack_pool *pool)
{
    assert(pool->n_idle > 0 && !mk_list_empty(&pool->idle));
    struct stack *stack = MK_CONTAINER_OF(pool->idle.prev, struct stack, node);
    mk_list_del(&stack->node);
    pool->n_idle--;
    return stack;
}

struct stack *stack_get(struct stack_pool *pool, int *ret_err)
{
    *ret_err = 0;
    if (pool->n_idle)
        return take_idle(pool);
    if (atomic_fetch_add_explicit(&in_process, 1, memory_order_relaxed) >= stack_limit()) {
        atomic_fetch_sub_explicit(&in_process, 1, memory_order_relaxed);
        *ret_err = -EAGAIN;
        return NULL;
    }
    struct stack *stack = map_stack();
    if (stack)
        return stack;
    atomic_fetch_sub_explicit(&in_process, 1, memory_order_relaxed);
    *ret_err = -ENOMEM;
    return NULL;
}

void stack_put(struct stack_pool *pool, struct stack *stack)
{
    if (pool->n_idle == IDLE_MAX) {
        unmap_stack(stack);
        return;
    }
    clean_stack(stack);
    mk_list_add(&pool->idle, &stack->node);
    pool->n_idle++;
}

bool stack_has_guard(const struct stack *stack, uintptr_t address)
{
    uintptr_t base = (uintptr_t)stack->base;
    return address < base && address >= base - get_guard_bytes();
}
