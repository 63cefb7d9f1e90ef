// SPDX-License-Identifier: Apache-2.0
/* Stacks: what is mapped, kept and given back. */
#include "testing.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "duda/core/dthread/stack.h"

enum { IDLE_MAX = 64 };

static struct stack *get(struct stack_pool *pool)
{
    int err = 1;
    struct stack *stack = stack_get(pool, &err);
    assert_non_null(stack);
    assert_int_equal(err, 0);
    return stack;
}

TEST(stacks_are_used_again)
{
    struct stack_pool pool;
    stack_pool_init(&pool);
    struct stack *first = get(&pool), *second = get(&pool);
    assert_ptr_not_equal(first, second);
    memset(first->base, 1, first->bytes); /* all of it can be written */
    assert_int_equal((first->bytes + sizeof(*first)) / 1024, stack_kilobytes());
    assert_int_equal(stack_count(), 2);
    stack_put(&pool, first);
    assert_ptr_equal(get(&pool), first);
    stack_put(&pool, first);
    stack_put(&pool, second);
    assert_int_equal(stack_count(), 2);
    stack_pool_release(&pool);
    assert_int_equal(stack_count(), 0);
}

TEST(many_are_given_back)
{
    struct stack_pool pool;
    struct stack *stacks[IDLE_MAX + 10];
    stack_pool_init(&pool);
    for (int i = 0; i < IDLE_MAX + 10; i++)
        stacks[i] = get(&pool);
    assert_int_equal(stack_count(), IDLE_MAX + 10);
    for (int i = 0; i < IDLE_MAX + 10; i++)
        stack_put(&pool, stacks[i]);
    assert_int_equal(stack_count(), IDLE_MAX);
    stack_pool_release(&pool);
    assert_int_equal(stack_count(), 0);
}

TEST(the_guard)
{
    struct stack_pool pool;
    stack_pool_init(&pool);
    struct stack *stack = get(&pool);
    uintptr_t base = (uintptr_t)stack->base;
    assert_false(stack_has_guard(stack, base));
    assert_true(stack_has_guard(stack, base - 1));
    assert_true(stack_has_guard(stack, base - 16384));
    assert_false(stack_has_guard(stack, base - 16385 - 65536)); /* pages may have 64 KB */
    for (unsigned offset = 1; offset <= 16384; offset += 16383) {
        pid_t child = fork();
        if (child == 0) {
            signal(SIGSEGV, SIG_DFL);
            setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
            ((volatile char *)stack->base)[-(long)offset] = 1;
            _exit(0);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    }
    stack_put(&pool, stack);
    stack_pool_release(&pool);
}

/* The kernel refuses further memory: a value, and the count is right. */
TEST(without_memory)
{
    struct stack_pool pool;
    int err = 0;
    pid_t child = fork();
    if (child == 0) {
        stack_pool_init(&pool);
        setrlimit(RLIMIT_AS, &(struct rlimit){1, 1});
        struct stack *stack = stack_get(&pool, &err);
        _exit(!stack && err == -ENOMEM && stack_count() == 0 ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(the_limit)
{
    unsigned long mappings;
    FILE *file = fopen("/proc/sys/vm/max_map_count", "re");
    if (!file)
        skip();
    assert_int_equal(fscanf(file, "%lu", &mappings), 1);
    fclose(file);
    assert_in_range(stack_limit(), 1, mappings / 4);
}
