// SPDX-License-Identifier: Apache-2.0
/* The least limit of the groups of a process, in both versions. */
#include "folder.h"

#include <stdlib.h>

#include "base/cgroup.h"

static uint64_t read_limit(const char *dir)
{
    char text[16];
    return mk__cgroup_read(dir, "limit", text, sizeof(text)) ? strtoull(text, NULL, 10) : 0;
}

static uint64_t find(const char *text)
{
    static const struct mk__cgroup_limit limit = {"cpu", read_limit};
    char groups[256];
    snprintf(groups, sizeof(groups), "%s", text);
    return mk__cgroup_find_limit_in(&limit, groups, mk_test_folder);
}

TEST(least_limit)
{
    static const struct {
        const char *groups;
        uint64_t limit;
    } cases[] = {
        {"", 0},
        {"0::/\n", 0},
        {"0::/a/b\n", 200},     /* that of "a", which is less than that of "b" */
        {"0::/a\n", 200},       /* no other line */
        {"0::/a/b/c/d\n", 200}, /* groups without a file */
        {"0::/none/of/them\n", 0},
        {"4:cpu,cpuacct:/x\n", 50},
        {"4:cpuset:/x\n5:memory:/x\n", 0},
        {"4:cpu:/x\n0::/a\n", 50},
        {"0::/a\n4:cpu:/x\n", 50},
        {"12\nno group\n:::\n0::/a", 200},
    };
    mk_test_write("a/limit", MK_STR("200"));
    mk_test_write("a/b/limit", MK_STR("300"));
    mk_test_write("cpu/x/limit", MK_STR("50"));
    for (size_t i = 0; i < COUNT(cases); i++)
        if (find(cases[i].groups) != cases[i].limit)
            fail_msg("case %zu: %llu", i, (unsigned long long)find(cases[i].groups));
}

TEST(root_of_the_hierarchy)
{
    mk_test_write("limit", MK_STR("7")); /* in a container the root is its own group */
    assert_int_equal(find("0::/\n"), 7);
    assert_int_equal(find("0::/a/b\n"), 7);
}

TEST(names_that_are_too_long)
{
    char dir[2000], text[16];
    memset(dir, 'x', sizeof(dir) - 1);
    dir[sizeof(dir) - 1] = '\0';
    assert_false(mk__cgroup_read(dir, "limit", text, sizeof(text)));
}

static int set_up(void **state)
{
    if (mk_test_folder_make(state) < 0)
        return -1;
    static const char *const folders[] = {"a", "a/b", "a/b/c", "cpu", "cpu/x"};
    for (size_t i = 0; i < COUNT(folders); i++)
        mk_test_mkdir(folders[i]);
    return 0;
}

TEST_FILE(set_up, mk_test_folder_remove)
