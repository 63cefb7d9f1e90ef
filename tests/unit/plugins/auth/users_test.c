// SPDX-License-Identifier: Apache-2.0
/*
 * Files of users and groups that are loaded, and those that mk_passwd changes.
 */
#include "folder.h"

#include "plugins/auth/passwd/passwd.h"
#include "plugins/auth/passwords.h"

#include <errno.h>

#define APR1 "$apr1$nlop1Zi9$GPOAXeylNHtkkvR06pSxa1"
#define SHA1 "{SHA}fGphxo74ubawYbKMNIvB7Xkhy1M="

static char text[512];
static struct mk_buf message;

static struct users *load(const char *content, int expected)
{
    struct users *u = NULL;
    mk_test_write("users", mk_str_c(content));
    mk_buf_init_fixed(&message, text, sizeof(text));
    assert_int_equal(users_load(mk_test_path("users"), &u, &message), expected);
    assert_true((u != NULL) == (expected == 0));
    return u;
}

TEST(lookup)
{
    struct users *u = load("zoe:" APR1 "\nada:" SHA1 "\n# end\nadam:" APR1 "\n", 0);
    assert_int_equal(u->n, 3);
    assert_str_equal(users_find(u, MK_STR("ada"))->hash, SHA1);
    assert_str_equal(users_find(u, MK_STR("adam"))->name, "adam");
    assert_str_equal(users_find(u, MK_STR("zoe"))->hash, APR1);
    static const char *const missing[] = {"", "ad", "adamo", "ZOE", "# end", "zz"};
    for (size_t i = 0; i < COUNT(missing); i++)
        assert_null(users_find(u, mk_str_c(missing[i])));
    users_add_warnings(u, &message);
    assert_non_null(strstr(mk_buf_cstr(&message), "1 of 3 users have a {SHA} hash"));
    assert_non_null(strstr(mk_buf_cstr(&message), "can read the hashes of this file")); /* mode 644 */
    users_free(u);
    u = load("", 0);
    assert_null(users_find(u, MK_STR("ada")));
    users_free(u);
}

static void assert_message(const char *end)
{
    const char *all = mk_buf_cstr(&message);
    size_t n = strlen(end);
    if (strlen(all) < n || strcmp(all + strlen(all) - n, end) != 0)
        fail_msg("\"%s\" does not end with \"%s\"", all, end);
}

TEST(mistakes)
{
    load("ada:" APR1 "\nbob:x\n", -EINVAL);
    assert_message("/users:2:5: the password is plain text or a hash of an unknown kind: set it again with mk_passwd");
    load("ada:" APR1 "\nbob:" APR1 "\n#\nada:" SHA1 "\n", -EINVAL);
    assert_message("/users:4:1: this user is in an earlier line already");
    struct users *u;
    mk_buf_init_fixed(&message, text, sizeof(text));
    assert_int_equal(users_load(mk_test_path("missing"), &u, &message), -ENOENT);
    assert_message("/missing cannot be read: No such file or directory");
    mk_buf_init_fixed(&message, text, sizeof(text));
    assert_int_equal(users_load(mk_test_folder, &u, &message), -EISDIR);
    assert_message(" is not a regular file");
    assert_int_equal(mkfifo(mk_test_path("fifo"), 0600), 0);
    mk_buf_init_fixed(&message, text, sizeof(text));
    assert_int_equal(users_load(mk_test_path("fifo"), &u, &message), -EINVAL);
    assert_message(" is not a regular file");
    mk_buf_init_fixed(&message, text, sizeof(text));
    mk_test_write("large", MK_STR("x"));
    assert_int_equal(truncate(mk_test_path("large"), HTPASSWD_BYTES_MAX + 1), 0);
    assert_int_equal(users_load(mk_test_path("large"), &u, &message), -EFBIG);
    assert_message(" has more than 16777216 bytes");
}

TEST(groups)
{
    struct groups *g;
    mk_buf_init_fixed(&message, text, sizeof(text));
    mk_test_write("groups", MK_STR("staff: zoe ada\nempty:\nadmin: ada\nstaff: bob\n"));
    assert_int_equal(groups_load(mk_test_path("groups"), &g, &message), 0);
    assert_true(groups_contain(g, MK_STR("staff"), MK_STR("ada")));
    assert_true(groups_contain(g, MK_STR("staff"), MK_STR("bob")));
    assert_true(groups_contain(g, MK_STR("admin"), MK_STR("ada")));
    assert_false(groups_contain(g, MK_STR("admin"), MK_STR("bob")));
    assert_false(groups_contain(g, MK_STR("empty"), MK_STR("")));
    assert_false(groups_contain(g, MK_STR("Staff"), MK_STR("ada")));
    assert_true(groups_have(g, MK_STR("staff")) && groups_have(g, MK_STR("admin")) && groups_have(g, MK_STR("empty")));
    assert_false(groups_have(g, MK_STR("Staff")) || groups_have(g, MK_STR("staf")) || groups_have(g, MK_STR("")));
    groups_free(g);
    mk_test_write("groups", MK_STR("staff: zoe\nada\n"));
    assert_int_equal(groups_load(mk_test_path("groups"), &g, &message), -EINVAL);
    assert_message("/groups:2:1: a line is the name of a group, a colon and the names of its users");
}

static int load_both(void *ctx)
{
    struct users *u = NULL;
    struct groups *g = NULL;
    (void)ctx;
    mk_buf_init_fixed(&message, text, sizeof(text));
    char path[512];
    snprintf(path, sizeof(path), "%s", mk_test_path("users"));
    int err = users_load(path, &u, &message);
    err = err == 0 ? groups_load(mk_test_path("groups"), &g, &message) : err;
    assert_true(err == 0 || message.len);
    users_free(u);
    groups_free(g);
    return err;
}

TEST(no_memory)
{
    mk_test_write("users", MK_STR("ada:" APR1 "\nbob:" APR1 "\neve:" APR1 "\n"));
    mk_test_write("groups", MK_STR("staff: zoe ada bob eve\n"));
    unsigned open_files = mk_test_descriptors();
    assert_true(mk_test_failing_allocs(load_both, NULL) > 3);
    assert_int_equal(mk_test_descriptors(), open_files);
}

/* ── what mk_passwd writes ── */

static void assert_edited(const char *before, const char *user, const char *hash, bool found, const char *after)
{
    struct mk_buf out;
    mk_buf_init(&out, 4096);
    bool was = hash ? edit_set(&out, mk_str_c(before), mk_str_c(user), mk_str_c(hash))
                    : edit_delete(&out, mk_str_c(before), mk_str_c(user));
    assert_int_equal(was, found);
    assert_string_equal(mk_buf_cstr(&out), after);
    mk_buf_release(&out);
}

TEST(edits)
{
    struct mk_str hash;
    assert_edited("", "ada", "H", false, "ada:H\n");
    assert_edited("bob:X", "ada", "H", false, "bob:X\nada:H\n");
    assert_edited("# ada:\nada:X:Ada L.\r\nadam:Y\n\nada:Z\n", "ada", "H", true, "# ada:\nada:H:Ada L.\nadam:Y\n\n");
    assert_edited("ad:X\nada:Y\nbob:plain text\n", "ada", NULL, true, "ad:X\nbob:plain text\n");
    assert_edited("ada\nbob:X\n", "ada", NULL, false, "ada\nbob:X\n");
    assert_true(edit_find(MK_STR("adam:A\nada:B:C\nada:D\n"), MK_STR("ada"), &hash));
    assert_str_equal(hash, "B");
    assert_false(edit_find(MK_STR("adam:A\n"), MK_STR("ada"), &hash));
}

TEST_FILE(mk_test_folder_make, mk_test_folder_remove)
