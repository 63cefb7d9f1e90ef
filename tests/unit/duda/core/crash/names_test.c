// SPDX-License-Identifier: Apache-2.0
/* Functions and lines of addresses: the object is this program. */
#include "testing.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "duda/core/crash/crash.h"
#include "duda/core/crash/names.h"

static __attribute__((noinline)) int find_me(int n)
{
    return n * 3;
}

static struct name last;
static char file[4096];

static void keep(void *ctx, const struct name *name)
{
    ++*(unsigned *)ctx;
    last = *name;
    snprintf(file, sizeof(file), "%s", name->file ? name->file : "");
}

static struct crash_object *add(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct crash_object *o = crash_add_object(CRASH_SERVICE, "shop", (const void *)(uintptr_t)find_me);
    assert_non_null(o);
    assert_true(fd >= 0);
    crash_set_file(o, path, fd);
    return o;
}

static void end(struct crash_object *o)
{
    crash_remove_object(o);
    crash_stop();
}

TEST(a_static_function)
{
    unsigned n = 0;
    struct crash_object *o = add("/proc/self/exe");
    assert_int_equal(find_me(2), 6);
    assert_int_equal(names_find(o, (uintptr_t)find_me, keep, &n), 1);
    assert_int_equal(n, 1);
    assert_string_equal(last.function, "find_me");
    assert_non_null(strstr(file, "names_test.c"));
    assert_in_range(last.line, 12, 15);
    end(o);
}

TEST(an_address_that_is_no_code)
{
    unsigned n = 0;
    struct crash_object *o = add("/proc/self/exe");
    assert_int_equal(names_find(o, 16, keep, &n), 0);
    assert_int_equal(n, 0);
    end(o);
}

/* A newer file in its place, or none, has no part in it. */
TEST(a_file_that_was_removed)
{
    unsigned n = 0;
    char path[] = "names-XXXXXX";
    int fd = mkstemp(path), program = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    assert_true(sendfile(fd, program, NULL, 1 << 30) > 0);
    struct crash_object *o = add(path);
    unlink(path);
    assert_int_equal(names_find(o, (uintptr_t)find_me, keep, &n), 1);
    assert_string_equal(last.function, "find_me");
    end(o);
    close(fd);
    close(program);
}

TEST(a_path_that_is_too_long)
{
    unsigned n = 0;
    char path[CRASH_FILE_BYTES + 8];
    memset(path, '/', sizeof(path));
    memcpy(path + sizeof(path) - 15, "proc/self/exe", 14);
    struct crash_object *o = add(path);
    assert_int_equal(names_find(o, (uintptr_t)find_me, keep, &n), 1);
    end(o);
}

TEST(without_a_copy)
{
    unsigned n = 0;
    struct crash_object *o = crash_add_object(CRASH_SERVICE, "shop", (const void *)(uintptr_t)find_me);
    crash_set_file(o, "/proc/self/exe", -1);
    assert_int_equal(names_find(o, (uintptr_t)find_me, keep, &n), 0);
    assert_non_null(strstr(names_explain(o), "no descriptor was left"));
    end(o);
}

/* A thread that runs on when its service has ended. What was read before is still there. */
TEST(after_the_end)
{
    unsigned n = 0;
    struct crash_object *o = add("/proc/self/exe");
    crash_remove_object(o);
    assert_int_equal(names_find(o, (uintptr_t)find_me, keep, &n), 0);
    assert_non_null(strstr(names_explain(o), "the service has ended"));
    assert_ptr_equal(add("/proc/self/exe"), o);
    assert_int_equal(names_find(o, (uintptr_t)find_me, keep, &n), 1);
    crash_remove_object(o);
    assert_int_equal(names_find(o, (uintptr_t)find_me, keep, &n), 1);
    crash_stop();
}

/* The number of its descriptor is not that of another file while a thread reads it. */
TEST(the_end_while_a_thread_reads)
{
    struct crash_object *o = add("/proc/self/exe");
    assert_true(crash_hold_copy(o));
    crash_remove_object(o);
    assert_true(fcntl(o->copy, F_GETFD) >= 0);
    struct crash_object *other = add("/proc/self/exe");
    assert_ptr_not_equal(other, o);
    crash_release_copy(o);
    assert_int_equal(fcntl(o->copy, F_GETFD), -1);
    assert_false(crash_hold_copy(o));
    end(other);
}

/* The last test: nothing is read any more then. */
TEST(too_many_versions)
{
    unsigned n = 0, versions = 0;
    struct crash_object *o = add("/proc/self/exe");
    while (names_find(o, (uintptr_t)find_me, keep, &n) > 0 && versions++ < 100) {
        crash_remove_object(o);
        o = add("/proc/self/exe");
    }
    assert_in_range(versions, 1, 64);
    assert_non_null(strstr(names_explain(o), "those of too many versions"));
    end(o);
}
