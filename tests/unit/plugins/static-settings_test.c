// SPDX-License-Identifier: Apache-2.0
/* What a host says wins over the server, key by key. */
#include "testing.h"

#include "../../../plugins/static/settings.h"

static struct mk_str servers_index[] = {MK_STR("index.html")}, own_index[] = {MK_STR("home.html"), MK_STR("a.html")};
static const struct static_settings server = {.index = {servers_index, 1},
                                              .symlinks = SYMLINKS_INSIDE,
                                              .ranges = true,
                                              .dotfiles = false};

static void test_as_the_server(void **state)
{
    static const struct static_host host;
    struct static_site site = {.host = &host};
    const struct static_settings *s = settings_merge(&site, &server);
    (void)state;
    assert_ptr_equal(s->index.items, servers_index);
    assert_int_equal(s->symlinks, SYMLINKS_INSIDE);
    assert_true(s->ranges);
    assert_false(s->dotfiles);
}

static void test_one_by_one(void **state)
{
    (void)state;
    for (int own = 1; own <= 3; own++) {
        struct static_host host = {.symlinks = own};
        struct static_site site = {.host = &host};
        assert_int_equal(settings_merge(&site, &server)->symlinks, own - 1);
    }
    for (int own = 1; own <= 2; own++) {
        struct static_host host = {.ranges = own, .dotfiles = own};
        struct static_site site = {.host = &host};
        const struct static_settings *s = settings_merge(&site, &server);
        assert_int_equal(s->ranges, own - 1);
        assert_int_equal(s->dotfiles, own - 1);
        assert_int_equal(s->symlinks, SYMLINKS_INSIDE);
    }
    struct static_host host = {.index = {own_index, 2}};
    struct static_site site = {.host = &host};
    const struct static_settings *s = settings_merge(&site, &server);
    assert_int_equal(s->index.n, 2);
    assert_ptr_equal(s->index.items, own_index);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_as_the_server), cmocka_unit_test(test_one_by_one)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
