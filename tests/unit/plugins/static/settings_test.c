// SPDX-License-Identifier: Apache-2.0
/* What a host says wins over the server, key by key. */
#include "testing.h"

#include "plugins/static/static.h"

static struct mk_str servers_index[] = {MK_STR("index.html")}, own_index[] = {MK_STR("home.html"), MK_STR("a.html")};
static const struct static_settings server = {.index = {servers_index, 1},
                                              .symlinks = SYMLINKS_INSIDE,
                                              .ranges = true,
                                              .dotfiles = false};

TEST(as_the_server)
{
    static const struct static_host host;
    struct static_site site = {.host = &host};
    const struct static_settings *s = mk__static_settings_merge(&site, &server);
    assert_ptr_equal(s->index.items, servers_index);
    assert_int_equal(s->symlinks, SYMLINKS_INSIDE);
    assert_true(s->ranges);
    assert_false(s->dotfiles);
}

TEST(one_by_one)
{
    for (int own = 1; own <= 3; own++) {
        struct static_host host = {.symlinks = own};
        struct static_site site = {.host = &host};
        assert_int_equal(mk__static_settings_merge(&site, &server)->symlinks, own - 1);
    }
    for (int own = 1; own <= 2; own++) {
        struct static_host host = {.ranges = own, .dotfiles = own};
        struct static_site site = {.host = &host};
        const struct static_settings *s = mk__static_settings_merge(&site, &server);
        assert_int_equal(s->ranges, own - 1);
        assert_int_equal(s->dotfiles, own - 1);
        assert_int_equal(s->symlinks, SYMLINKS_INSIDE);
    }
    struct static_host host = {.index = {own_index, 2}};
    struct static_site site = {.host = &host};
    const struct static_settings *s = mk__static_settings_merge(&site, &server);
    assert_int_equal(s->index.n, 2);
    assert_ptr_equal(s->index.items, own_index);
}
