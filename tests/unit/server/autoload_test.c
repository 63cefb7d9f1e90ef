// SPDX-License-Identifier: Apache-2.0
/* The sections that a configuration contains, found before it is loaded. */
#include "folder.h"

#include <errno.h>

#include "server/autoload.h"

static const char *const names[] = {"alpha", "beta", "gamma", "delta", NULL};

static uint32_t look(void)
{
    char dir[512];
    uint32_t wanted = 99;
    snprintf(dir, sizeof(dir), "%s", mk_test_folder);
    assert_int_equal(mk__autoload_find_modules(dir, names, &wanted), 0);
    return wanted;
}

static void test_words(void **state)
{
    static const struct {
        const char *text;
        uint32_t wanted;
    } cases[] = {
        {"", 0},
        {"[ALPHA]\n", 1},
        {"[SERVER]\n    Beta On\n", 2},
        {"[ Gamma ]\n", 0}, /* not a section that can be read */
        {"  [gamma]  # why\n", 4},
        {"# [ALPHA]\n", 0},
        {"[SERVER]\n    Workers alpha\n", 0},
        {"[SERVER]\n    Listen 443 alpha proxy gamma\n", 5},
        {"[SERVER]\n    listen 443 proxy # alpha\n", 0},
        {"[SERVER]\n    TransportLayer beta\n", 2},
        {"[ALPHABET]\n    Alp ha\n", 0},
        {"[delta]", 8},
        {"[ALPHA]\r\n[BETA]\n\n[ALPHA]\n", 3},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        mk_test_write("monkey.conf", mk_str_c(cases[i].text));
        if (look() != cases[i].wanted)
            fail_msg("case %zu", i);
    }
    mk_test_write("monkey.conf", MK_STR(""));
}

static void test_a_value(void **state)
{
    (void)state;
    assert_int_equal(mk__autoload_match_words(MK_STR("beta"), names), 2);
    assert_int_equal(mk__autoload_match_words(MK_STR("127.0.0.1:443 ALPHA proxy delta"), names), 9);
    assert_int_equal(mk__autoload_match_words(MK_STR("443 # alpha"), names), 0);
    assert_int_equal(mk__autoload_match_words(MK_STR(""), names), 0);
}

static void test_places(void **state)
{
    (void)state;
    assert_int_equal(look(), 0);
    mk_test_write("sites/one", MK_STR("[ALPHA]\n"));
    mk_test_write("sites/two", MK_STR("[BETA]\n"));
    mk_test_write("plugins/gamma/gamma.conf", MK_STR("[GAMMA]\n"));
    mk_test_write("elsewhere", MK_STR("[DELTA]\n"));
    assert_int_equal(look(), 7);
}

static int look_again(void *ctx)
{
    uint32_t wanted;
    return mk__autoload_find_modules(ctx, names, &wanted);
}

static void test_every_allocation_may_fail(void **state)
{
    char dir[512];
    (void)state;
    snprintf(dir, sizeof(dir), "%s", mk_test_folder);
    assert_true(mk_test_failing_allocs(look_again, dir) > 3);
}

static int set_up(void **state)
{
    if (mk_test_folder_make(state) < 0)
        return -1;
    mk_test_mkdir("sites");
    mk_test_mkdir("plugins");
    mk_test_mkdir("plugins/gamma");
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_a_value),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, set_up, mk_test_folder_remove);
}
