// SPDX-License-Identifier: Apache-2.0
/*
 * What every unit test needs: cmocka with the headers that it wants before itself, bytes flush against a
 * guard page, and the loop that makes the n-th allocation fail.
 */
#ifndef MK_UNIT_TESTING_H
#define MK_UNIT_TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include <monkey/base/str.h>

#include "base/arena.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/*
 * Defines a test and registers it: TEST(reads_a_line) { ... }. A fixture is an argument, as cmocka's functions that
 * run before and after the test: TEST(reads_a_line, open_arena, close_arena). The parameter `state` is cmocka's.
 */
#define TEST(name_, ...) \
    static void test_##name_(void **state); \
    __attribute__((constructor)) static void add_test_##name_(void) \
    { \
        static struct mk_test_case row = {.file = __BASE_FILE__, .test = {.name = #name_, .test_func = test_##name_}}; \
        mk_test_add(&row, (CMFixtureFunction[2]){__VA_ARGS__}); \
    } \
    static void test_##name_(__attribute__((unused)) void **state)

/* Functions that run once before and once after all tests of the file: TEST_FILE(make_folder, remove_folder). */
#define TEST_FILE(...) \
    __attribute__((constructor)) static void add_file_fixture(void) \
    { \
        static struct mk_test_case row = {.file = __BASE_FILE__}; \
        mk_test_add(&row, (CMFixtureFunction[2]){__VA_ARGS__}); \
    }

/* A registered test, or the fixture of a file, which has no function. */
struct mk_test_case {
    struct mk_test_case *next;
    const char *file;
    struct CMUnitTest test;
};

/* Called by the macros above, before main(). `fixture`: set-up and tear-down, each may be NULL. */
void mk_test_add(struct mk_test_case *row, const CMFixtureFunction fixture[2]);

/* Asserts that a mk_str holds exactly the text of a C string. */
#define assert_str_equal(str, text) \
    do { \
        struct mk_str str_ = (str), text_ = mk_str_c(text); \
        if (!mk_str_eq(str_, text_)) \
            fail_msg("\"%.*s\" is not \"%s\"", MK_STR_ARG(str_), text); \
    } while (0)

static inline size_t mk_test_pages(size_t len)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (len + page) / page * page;
}

/* A copy of `len` bytes whose end touches a page that cannot be read or written: p[len] faults. */
static inline char *mk_test_guarded(const void *bytes, size_t len)
{
    size_t pages = mk_test_pages(len);
    char *map = mmap(NULL, pages + mk_test_pages(0), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(map, MAP_FAILED);
    assert_int_equal(mprotect(map + pages, mk_test_pages(0), PROT_NONE), 0);
    if (len)
        memcpy(map + pages - len, bytes, len);
    return map + pages - len;
}

static inline void mk_test_unguard(char *p, size_t len)
{
    size_t pages = mk_test_pages(len);
    assert_int_equal(munmap(p + len - pages, pages + mk_test_pages(0)), 0);
}

/*
 * Calls `run` with its first allocation failing, then its second, and so on until it needs fewer. `run`
 * cleans up after itself and returns 0 or -errno: it must fail when an allocation did, and succeed in the
 * last round. Returns how many allocations a whole run has.
 */
static inline long mk_test_failing_allocs(int (*run)(void *ctx), void *ctx)
{
    for (long n = 0;; n++) {
        mk__alloc_countdown = n;
        int result = run(ctx);
        bool all_fine = mk__alloc_countdown >= 0;
        mk__alloc_countdown = -1;
        if (all_fine) {
            assert_int_equal(result, 0);
            return n;
        }
        assert_true(result < 0);
    }
}

#endif
