// SPDX-License-Identifier: Apache-2.0
/* Scripts that were found lately: by section and path, for a second, one for each slot. */
#include "testing.h"

#include <stdio.h>

#include "plugins/fastcgi/fastcgi.h"

static struct recent recent;
static const struct fastcgi_conf first, second;
static const struct fastcgi_script script = {.name = MK_STR_INIT("/a.php"),
                                             .info = MK_STR_INIT("/x"),
                                             .filename = MK_STR_INIT("/srv/a.php"),
                                             .root = MK_STR_INIT("/srv")};

static int close_recent(void **test_state)
{
    (void)test_state;
    recent_release(&recent);
    return 0;
}

static int open_nothing(void **test_state)
{
    (void)test_state;
    return 0;
}

TEST(finds_for_a_second, open_nothing, close_recent)
{
    assert_null(recent_find(&recent, &first, MK_STR("/a.php/x"), 100));
    recent_add(&recent, &first, MK_STR("/a.php/x"), &script, 100);
    const struct fastcgi_script *found = recent_find(&recent, &first, MK_STR("/a.php/x"), 100 + RECENT_MS - 1);
    assert_non_null(found);
    assert_str_equal(found->name, "/a.php");
    assert_str_equal(found->info, "/x");
    assert_str_equal(found->filename, "/srv/a.php");
    assert_str_equal(found->root, "/srv");
    assert_null(recent_find(&recent, &first, MK_STR("/a.php/x"), 100 + RECENT_MS));
    assert_null(recent_find(&recent, &second, MK_STR("/a.php/x"), 100));
    assert_null(recent_find(&recent, &first, MK_STR("/a.php/y"), 100));
}

TEST(replaces, open_nothing, close_recent)
{
    char path[32];
    for (unsigned i = 0; i < 1000; i++) {
        snprintf(path, sizeof(path), "/%u.php", i);
        recent_add(&recent, &first, mk_str_c(path), &script, i);
        assert_non_null(recent_find(&recent, &first, mk_str_c(path), i));
    }
}

TEST(without_memory, open_nothing, close_recent)
{
    recent_add(&recent, &first, MK_STR("/a.php"), &script, 0);
    mk__alloc_countdown = 0;
    recent_add(&recent, &first, MK_STR("/a.php"), &script, 0);
    mk__alloc_countdown = -1;
    assert_null(recent_find(&recent, &first, MK_STR("/a.php"), 0));
}
