// SPDX-License-Identifier: Apache-2.0
/* Names of addresses and threads, and what is logged of a crash: the object of a service is this program here. */
#include "testing.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <monkey/log.h>

#include "duda/core/common/current.h"
#include "duda/core/crash/crash.h"
#include "duda/core/crash/crash_object.h"

enum { LOG_BYTES_MAX = 16384 };

static int mark;

TEST(addresses)
{
    char text[128];
    struct crash_object *object = crash_add_object(CRASH_SERVICE, "shop", &mark);
    assert_non_null(object);
    crash_describe((uintptr_t)&mark, text, sizeof(text));
    assert_memory_equal(text, "shop.duda+0x", 12);
    crash_describe((uintptr_t)dlsym(RTLD_DEFAULT, "getppid"), text, sizeof(text)); /* of another object */
    assert_null(strstr(text, "shop"));
    crash_describe((uintptr_t)&mark, text, 8);
    assert_string_equal(text, "shop.du");
    crash_remove_object(object);
    crash_stop();
}

/* Its name is known until another object takes the place, which is found first where both have been. */
TEST(an_object_that_has_ended)
{
    char text[128];
    crash_remove_object(crash_add_object(CRASH_SERVICE, "old", &mark));
    crash_describe((uintptr_t)&mark, text, sizeof(text));
    assert_memory_equal(text, "old.duda+", 9);
    struct crash_object *first = crash_add_object(CRASH_SERVICE, "first", &mark);
    crash_describe((uintptr_t)&mark, text, sizeof(text));
    assert_memory_equal(text, "first.duda+", 11);
    struct crash_object *second = crash_add_object(CRASH_SERVICE, "second", &mark);
    crash_remove_object(first);
    crash_describe((uintptr_t)&mark, text, sizeof(text));
    assert_memory_equal(text, "second.duda+", 12);
    crash_remove_object(second);
    crash_stop();
    crash_describe((uintptr_t)&mark, text, sizeof(text));
    assert_null(strstr(text, ".duda"));
}

TEST(what_is_mapped)
{
    assert_true(crash_is_mapped(&mark));
    assert_false(crash_is_mapped(NULL));
    assert_false(crash_is_mapped(&state)); /* the stack belongs to no object */
    assert_null(crash_add_object(CRASH_SERVICE, "none", &state));
    crash_stop();
}

TEST(the_caller)
{
    assert_null(crash_find_caller());
    struct crash_object *object = crash_add_object(CRASH_SERVICE, "shop", &mark);
    const char *name = crash_find_caller();
    assert_non_null(name);
    assert_string_equal(name, "shop");
    crash_remove_object(object);
    crash_stop();
}

/* Each call needs one of crash_leave_thread(); a sanitizer has its own stack for its handlers. */
TEST(the_stack_of_a_thread)
{
    stack_t before, now;
    sigaltstack(NULL, &before);
    struct crash_thread *first = crash_enter_thread(), *second = crash_enter_thread();
    assert_ptr_equal(first, second);
    sigaltstack(NULL, &now);
    assert_int_equal(now.ss_flags & SS_DISABLE, 0);
    crash_leave_thread(first);
    sigaltstack(NULL, &now);
    assert_int_equal(now.ss_flags & SS_DISABLE, 0);
    crash_leave_thread(second);
    sigaltstack(NULL, &now);
    assert_int_equal(now.ss_flags, before.ss_flags);
}

/* Ends by SIGABRT in a child, as a service or not, and returns what it has logged. */
static const char *crash(struct service *s, bool has_ended)
{
    static char text[LOG_BYTES_MAX];
    int fd = memfd_create("log", MFD_CLOEXEC), status;
    pid_t child = fork();
    if (child == 0) {
        mk_log_to(fd, MK_LOG_INFO);
        crash_use_log();
        crash_start();
        struct crash_object *object = s || has_ended ? crash_add_object(CRASH_SERVICE, "shop", &mark) : NULL;
        if (has_ended)
            crash_remove_object(object);
        if (s)
            current_enter(s, NULL);
        crash_enter_thread();
        raise(SIGABRT);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
    ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
    assert_in_range(n, 0, sizeof(text) - 1);
    text[n] = '\0';
    close(fd);
    return text;
}

TEST(a_crash)
{
    struct service s = {.features = features, .self = {.name = {(char *)(uintptr_t) "shop", 4}}};
    const char *log = crash(&s, false);
    assert_non_null(strstr(log, "error the service \"shop\" has crashed: SIGABRT\n"));
    assert_non_null(strstr(log, "error     #0 "));
    assert_non_null(strstr(log, "shop.duda+0x"));
    assert_null(strstr(log, " in worker"));
}

TEST(a_crash_of_what_has_ended)
{
    const char *log = crash(NULL, true);
    assert_non_null(
        strstr(log, "the service \"shop\" has ended, but a thread of it ran on and has crashed: SIGABRT\n"));
}

/* Memory may be damaged that the handler reads. */
TEST(a_crash_of_the_handler)
{
    struct service s = {.features = features, .self = {.name = {(char *)16, 4}}};
    int status;
    pid_t child = fork();
    if (child == 0) {
        close(STDERR_FILENO); /* a sanitizer may report it */
        alarm(30);
        signal(SIGSEGV, SIG_DFL); /* not cmocka's, which would run the tests behind this one */
        crash_start();
        current_enter(&s, NULL);
        raise(SIGABRT);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) ? WTERMSIG(status) != SIGALRM : WEXITSTATUS(status) != 0);
}

TEST(a_crash_of_no_service)
{
    assert_string_equal(crash(NULL, false), "");
}
