// SPDX-License-Identifier: Apache-2.0
/* Precompressed variants: which file a request gets, by what it accepts and by what lies there. */
#include "site.h"

#include <errno.h>

#include "plugins/static/static.h"

static const struct {
    const char *path, *accept, *content;
    enum mk_coding coding;
    bool varies;
} cases[] = {
    {"/all.js", "gzip, br, zstd", "all-br", MK_CODING_BR, true},
    {"/all.js", "gzip, br;q=0.5, zstd", "all-zst", MK_CODING_ZSTD, true},
    {"/all.js", "gzip", "all-gz", MK_CODING_GZIP, true},
    {"/all.js", "*;q=0, gzip", "all-gz", MK_CODING_GZIP, true},
    {"/all.js", "", "all", MK_CODING_IDENTITY, true},
    {"/all.js", NULL, "all", MK_CODING_IDENTITY, true},
    {"/all.js", "identity, gzip;q=0.5", "all", MK_CODING_IDENTITY, true},
    {"/one.js", "gzip, br, zstd", "one-gz", MK_CODING_GZIP, true}, /* its third choice */
    {"/one.js", "br", "one", MK_CODING_IDENTITY, true},
    {"/plain.js", "gzip, br, zstd", "plain", MK_CODING_IDENTITY, true},
    {"/plain.js", "identity;q=0", "plain", MK_CODING_IDENTITY, true}, /* better than nothing */
    {"/old.js", "gzip, br", "old-gz", MK_CODING_GZIP, true},          /* its .br is out of date */
    {"/whole.js", "br", "whole-br", MK_CODING_BR, true},              /* of the same second, without a fraction */
    {"/folder.js", "br", "folder", MK_CODING_IDENTITY, true},         /* folder.js.br is a directory */
    {"/link.js", "br", "link", MK_CODING_IDENTITY, true},             /* link.js.br is a link */
    {"/sub/", "br", "index-br", MK_CODING_BR, true},
    {"/all.js.gz", "gzip, br", "all-gz", MK_CODING_IDENTITY, false}, /* by its own name it is what it is */
    {"/all.js.br", "gzip, br", "all-br", MK_CODING_IDENTITY, false},
    {"/only.js", "br", NULL, MK_CODING_IDENTITY, false}, /* only.js.br is a variant of nothing */
};

static void check(size_t i, bool cached)
{
    struct mk_accept accept;
    char content[32] = "";
    mk_accept_encoding(mk_str_c(cases[i].accept), &accept);
    struct find_result f = find_path(&site, mk_str_c(cases[i].path), cases[i].accept ? &accept : NULL, cached);
    if (cached && f.kind == FOUND_NOTHING && f.err == EAGAIN)
        return;
    assert_int_equal(f.kind, cases[i].content ? FOUND_FILE : FOUND_NOTHING);
    if (!cases[i].content)
        return;
    ssize_t n = read(f.fd, content, sizeof(content) - 1);
    assert_int_equal(n, f.bytes);
    close(f.fd);
    if (strcmp(content, cases[i].content) != 0 || f.coding != cases[i].coding || f.varies != cases[i].varies)
        fail_msg("%s for %s: %s", cases[i].path, cases[i].accept, content);
    if (f.name.p[0] == '/')
        assert_str_equal(f.name, cases[i].path); /* the type is that of the file */
}

TEST(choices)
{
    unsigned before = mk_test_descriptors();
    for (size_t i = 0; i < COUNT(cases); i++) {
        check(i, false);
        check(i, true);
    }
    assert_int_equal(mk_test_descriptors(), before);
}

TEST(not_wanted)
{
    struct mk_accept accept;
    unsigned n = host.n_codings;
    host.n_codings = 0;
    mk_accept_encoding(MK_STR("br"), &accept);
    struct find_result f = find_path(&site, MK_STR("/all.js"), &accept, false);
    assert_int_equal(f.kind, FOUND_FILE);
    assert_int_equal(f.coding, MK_CODING_IDENTITY);
    assert_false(f.varies);
    close(f.fd);
    host.n_codings = n;
}

TEST(long_names)
{
    char path[5 + 255 + 1];
    struct mk_accept accept;
    memset(path, 'n', sizeof(path));
    memcpy(path, "root/", 5);
    path[sizeof(path) - 1] = '\0'; /* 255 bytes, as long as a name can be: there is no place for a suffix */
    mk_test_write(path, MK_STR("long"));
    mk_accept_encoding(MK_STR("br"), &accept);
    struct find_result f = find_path(&site, mk_str_c(path + 4), &accept, false);
    assert_int_equal(f.kind, FOUND_FILE);
    assert_int_equal(f.coding, MK_CODING_IDENTITY);
    close(f.fd);
}

/* Without the key there are no variants: no Vary, and no file is looked up. */
TEST(patterns)
{
    static const struct {
        const char *pattern, *prefix, *path;
        bool varies;
    } meant[] = {
        {"*.js", "", "/all.js", true},
        {"*.css", "", "/all.js", false},
        {"/sub", "", "/sub/", true},
        {"*.html", "", "/sub/", true},
        {"=/sub/", "", "/sub/", false},
        {"/sub", "", "/all.js", false},
        {"/assets", "", "/all.js", false},
        {"/assets", "/assets", "/all.js", true},
        {"/all.js", "/assets", "/all.js", false},
        {"=/assets/sub/index.html", "/assets", "/sub/", true},
    };
    struct mk_accept accept;
    mk_accept_encoding(MK_STR("br"), &accept);
    for (size_t i = 0; i < COUNT(meant); i++) {
        struct mk_pattern patterns[2];
        assert_int_equal(mk_pattern_parse(&patterns[0], MK_STR("=/nothing"), NULL, NULL), 0);
        assert_int_equal(mk_pattern_parse(&patterns[1], mk_str_c(meant[i].pattern), NULL, NULL), 0);
        host.precompressed_match = (struct mk_patterns){patterns, 2};
        site.prefix = mk_str_c(meant[i].prefix);
        struct find_result f = find_path(&site, mk_str_c(meant[i].path), &accept, false);
        assert_int_equal(f.kind, FOUND_FILE);
        close(f.fd);
        if (f.varies != meant[i].varies || (f.coding == MK_CODING_BR) != meant[i].varies)
            fail_msg("%s for %s%s", meant[i].pattern, meant[i].prefix, meant[i].path);
    }
    host.precompressed_match.n = 0;
    site.prefix = MK_STR("");
}

static void set_age(const char *name, long seconds, long nanoseconds)
{
    struct timespec times[2] = {{seconds, nanoseconds}, {seconds, nanoseconds}};
    assert_int_equal(utimensat(AT_FDCWD, mk_test_path(name), times, AT_SYMLINK_NOFOLLOW), 0);
}

static int set_up(void **state)
{
    static const char *const files[][2] = {{"root/all.js", "all"},
                                           {"root/all.js.br", "all-br"},
                                           {"root/all.js.zst", "all-zst"},
                                           {"root/all.js.gz", "all-gz"},
                                           {"root/one.js", "one"},
                                           {"root/one.js.gz", "one-gz"},
                                           {"root/plain.js", "plain"},
                                           {"root/old.js", "old"},
                                           {"root/old.js.br", "old-br"},
                                           {"root/old.js.gz", "old-gz"},
                                           {"root/whole.js", "whole"},
                                           {"root/whole.js.br", "whole-br"},
                                           {"root/folder.js", "folder"},
                                           {"root/link.js", "link"},
                                           {"root/only.js.br", "only"},
                                           {"root/sub/index.html", "index"},
                                           {"root/sub/index.html.br", "index-br"}};
    static struct mk_str index[] = {MK_STR("index.html")};
    if (mk_test_folder_make(state) < 0)
        return -1;
    mk_test_mkdir("root");
    mk_test_mkdir("root/sub");
    mk_test_mkdir("root/folder.js.br");
    for (size_t i = 0; i < COUNT(files); i++) {
        mk_test_write(files[i][0], mk_str_c(files[i][1]));
        set_age(files[i][0], 1000, 500);
    }
    mk_test_link("all.js.br", "root/link.js.br");
    set_age("root/old.js.br", 999, 999999999);
    set_age("root/old.js.gz", 1001, 0);
    set_age("root/whole.js", 1000, 600000000);
    set_age("root/whole.js.br", 1000, 0);
    host = (struct static_host){.codings = {MK_CODING_BR, MK_CODING_ZSTD, MK_CODING_GZIP}, .n_codings = 3};
    return open_site(index, 1);
}

TEST_FILE(set_up, tear_down)
