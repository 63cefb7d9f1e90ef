// SPDX-License-Identifier: Apache-2.0
/* What a thread has from its beginning: signals, processors, stack. */
#include "testing.h"

#include <monkey/base/thread_start.h>

#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <unistd.h>

enum { STACK_BYTES = 256 * 1024 };

struct seen {
    sem_t ended;
    sigset_t mask;
    cpu_set_t cpus;
    size_t stack_bytes;
    int detach_state;
};

static void *look(void *ctx)
{
    struct seen *seen = ctx;
    pthread_attr_t attr;
    pthread_sigmask(SIG_BLOCK, NULL, &seen->mask);
    sched_getaffinity(0, sizeof(seen->cpus), &seen->cpus);
    pthread_getattr_np(pthread_self(), &attr);
    pthread_attr_getstacksize(&attr, &seen->stack_bytes);
    pthread_attr_getdetachstate(&attr, &seen->detach_state);
    pthread_attr_destroy(&attr);
    sem_post(&seen->ended);
    return ctx;
}

static void wait_for(struct seen *seen)
{
    while (sem_wait(&seen->ended) < 0)
        ;
    sem_destroy(&seen->ended);
}

TEST(signals)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
    struct seen seen;
    sigset_t before, after;
    pthread_t id;
    void *result;
    sem_init(&seen.ended, 0, 0);
    pthread_sigmask(SIG_BLOCK, NULL, &before);
    assert_int_equal(mk_thread_start(&id, STACK_BYTES, look, &seen), 0);
    pthread_sigmask(SIG_BLOCK, NULL, &after);
    assert_int_equal(sigismember(&before, SIGTERM), 0);
    assert_int_equal(sigismember(&after, SIGTERM), 0);
    assert_int_equal(pthread_join(id, &result), 0);
    assert_ptr_equal(result, &seen);
    wait_for(&seen);
    assert_int_equal(sigismember(&seen.mask, SIGTERM), 1);
    assert_int_equal(sigismember(&seen.mask, SIGPIPE), 1);
    for (unsigned i = 0; i < MK_COUNT_OF(faults); i++)
        assert_int_equal(sigismember(&seen.mask, faults[i]), 0);
    assert_int_equal(seen.detach_state, PTHREAD_CREATE_JOINABLE);
    assert_in_range(seen.stack_bytes, STACK_BYTES, 16 * STACK_BYTES); /* ThreadSanitizer adds some; 8 MB are usual */
}

TEST(detached)
{
    struct seen seen;
    sem_init(&seen.ended, 0, 0);
    assert_int_equal(mk_thread_start(NULL, 0, look, &seen), 0);
    wait_for(&seen);
    assert_int_equal(seen.detach_state, PTHREAD_CREATE_DETACHED);
}

static void *start_another(void *ctx)
{
    cpu_set_t one;
    pthread_t id;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
    assert_int_equal(mk_thread_start(&id, 0, look, ctx), 0);
    assert_int_equal(pthread_join(id, NULL), 0);
    return NULL;
}

/* A thread that is bound to a processor binds no other one to it. */
TEST(processors)
{
    struct seen seen;
    cpu_set_t all;
    pthread_t id;
    sem_init(&seen.ended, 0, 0);
    assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
    assert_int_equal(mk_thread_start(&id, 0, start_another, &seen), 0);
    assert_int_equal(pthread_join(id, NULL), 0);
    wait_for(&seen);
    assert_true(CPU_EQUAL(&seen.cpus, &all));
}
