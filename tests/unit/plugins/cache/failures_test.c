// SPDX-License-Identifier: Apache-2.0
/* The n-th watch, or the n-th descriptor, is not there: requests get right answers, and changes are seen. */
#include "fixture.h"

#define NAME "one/two/a.txt"

extern unsigned mk_test_watch_fails_at; /* notify_test.c */

static unsigned *const counters[] = {&mk_test_watch_fails_at, &disk.fails_at};

/* Asks, also after a failure, which only its own request may see. */
static void expect_answer(const char *name, const char *wanted)
{
    const char *answer = ask_body(name);
    if (strcmp(answer, "507") == 0)
        answer = ask_body(name);
    assert_string_equal(answer, wanted);
}

/* Has the call with number `n` fail, anywhere in the life of two entries. Returns false if there are fewer. */
static bool fail_call(const char *rule, unsigned *counter, unsigned n)
{
    char text[16];
    open_cache("", rule);
    *counter = n;
    for (int i = 0; i < 4; i++) {
        snprintf(text, sizeof(text), "%d", i);
        replace_file(NAME, mk_str_c(text));
        mk_test_pass(&w, 1000); /* where the folder is not watched, the interval shows it */
        for (int k = 0; k < 3; k++) {
            expect_answer(NAME, text);
            expect_answer("one/none/a.txt", "404");
        }
    }
    bool has_failed = *counter == 0;
    *counter = 0;
    close_cache();
    return has_failed;
}

TEST(each_call)
{
    static const char *const rules[] = {"[CACHE]\n    Files Notify 1s\n", "[CACHE]\n    Files Revalidate 1s\n"};
    unsigned before = mk_test_descriptors(), failures = 0;
    for (size_t r = 0; r < COUNT(rules); r++)
        for (size_t c = 0; c < COUNT(counters); c++)
            for (unsigned n = 1; fail_call(rules[r], counters[c], n); n++)
                failures++;
    assert_true(failures > 20);
    assert_int_equal(mk_test_descriptors(), before);
}

static int make_files(void **state)
{
    if (make_cache_folder(state) < 0)
        return -1;
    mk_test_mkdir("root/one");
    mk_test_mkdir("root/one/two");
    mk_test_write("root/" NAME, MK_STR("first"));
    return 0;
}

TEST_FILE(make_files, mk_test_folder_remove)
