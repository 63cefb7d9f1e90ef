// SPDX-License-Identifier: Apache-2.0
/* TryFiles: which name is taken for a path. */
#include "site.h"

#include <errno.h>

/* What is found: "content name", "directory", the name of an error, or =CODE. */
static const char *describe(struct find_result *f)
{
    static char text[256];
    char content[32] = "";
    if (f->kind == FOUND_DIRECTORY)
        return "directory";
    if (f->kind == FOUND_NOTHING && f->status) {
        snprintf(text, sizeof(text), "=%d", f->status);
        return text;
    }
    if (f->kind == FOUND_NOTHING)
        return strerrorname_np(f->err);
    assert_int_equal(read(f->fd, content, sizeof(content) - 1), f->bytes);
    close(f->fd);
    snprintf(text, sizeof(text), "%s %.*s", content, MK_STR_ARG(f->name));
    return text;
}

static const struct {
    const char *tries[3], *path, *expected;
    int status;
} cases[] = {
    {{"$path", "/index.html"}, "/a.txt", "a /a.txt", 0},
    {{"$path", "/index.html"}, "/", "top index.html", 0},
    {{"$path", "/index.html"}, "/users/42", "top /index.html", 0},
    {{"$path", "/index.html"}, "/a.txt/deep/er/", "top /index.html", 0},
    {{"$path", "/index.html"}, "/docs", "top /index.html", 0}, /* a directory is not a file */
    {{"$path", "/index.html"}, "/docs/", "docs index.html", 0},
    {{"$path", "/index.html"}, "/empty/", "top /index.html", 0},
    {{"$path", "$path/", "/index.html"}, "/docs", "directory", 0},
    {{"$path", "$path/", "/index.html"}, "/docs/", "docs index.html", 0},
    {{"$path", "$path/", "/index.html"}, "/empty", "top /index.html", 0},
    {{"$path/", "$path"}, "/a.txt", "a /a.txt", 0},
    {{"$path", "$path.html"}, "/page", "page $path.html", 0},
    {{"$path.html", "$path"}, "/page", "page $path.html", 0},
    {{"$path", "$path.html"}, "/", "top index.html", 0},
    {{"$path.html"}, "/docs/", "ENOENT", 0}, /* "/docs/.html" is hidden */
    {{"$path", "$path.html"}, "/none", "ENOENT", 0},
    {{"$path", "$path.html"}, "/none", "=410", 410},
    {{"$path"}, "/a.txt", "a /a.txt", 404},
    {{"$path"}, "/fifo", "=404", 404},
    {{"/other$path"}, "/a.txt", "other a /a.txt", 0},
    {{"/other$path/"}, "/a.txt", "ENOTDIR", 0},
    {{"$path", "/docs/"}, "/x", "docs index.html", 0},
    {{"$path", "/../secret"}, "/x", "=404", 404}, /* not even the operator leaves the root */
    {{"$path", "/link"}, "/x", "ELOOP", 0},
    {{"$path", "/index.html"}, "/link", "top /index.html", 0},
    {{"/a.txt"}, "/docs/", "a /a.txt", 0},
};

static void use(size_t i, struct mk_str items[3])
{
    unsigned n = 0;
    for (; n < 3 && cases[i].tries[n]; n++)
        items[n] = mk_str_c(cases[i].tries[n]);
    host = (struct static_host){.try_files = {items, n}, .n_tries = n, .last_status = cases[i].status};
}

TEST(names)
{
    unsigned before = mk_test_descriptors();
    struct mk_str items[3];
    for (size_t i = 0; i < 2 * COUNT(cases); i++) {
        use(i / 2, items);
        struct find_result f = find_path(&site, mk_str_c(cases[i / 2].path), NULL, i % 2);
        const char *found = describe(&f);
        bool must_wait = i % 2 && strcmp(found, "EAGAIN") == 0;
        if (strcmp(found, cases[i / 2].expected) != 0 && !must_wait)
            fail_msg("%s: %s, not %s", cases[i / 2].path, found, cases[i / 2].expected);
    }
    assert_int_equal(mk_test_descriptors(), before);
}

TEST(long_names)
{
    struct mk_str items[] = {MK_STR("/other$path.html"), MK_STR("/index.html")};
    static char path[STATIC_NAME_BYTES];
    host = (struct static_host){.try_files = {items, 2}, .n_tries = 2};
    for (size_t i = 0; i < sizeof(path) - 1; i++)
        path[i] = i % 2 ? 'x' : '/';
    struct find_result f = find_path(&site, mk_str_c(path), NULL, false);
    assert_string_equal(describe(&f), "top /index.html");
}

TEST(variants_of_what_was_tried)
{
    struct mk_str items[] = {MK_STR("$path"), MK_STR("/index.html")};
    struct mk_accept accept;
    host = (struct static_host){.try_files = {items, 2}, .n_tries = 2, .codings = {MK_CODING_GZIP}, .n_codings = 1};
    mk_accept_encoding(MK_STR("gzip"), &accept);
    struct find_result f = find_path(&site, MK_STR("/users/42"), &accept, false);
    assert_int_equal(f.coding, MK_CODING_GZIP);
    assert_string_equal(describe(&f), "top-gz /index.html");
}

static int set_up(void **state)
{
    static const char *const files[][2] = {{"root/index.html", "top"},
                                           {"root/index.html.gz", "top-gz"},
                                           {"root/a.txt", "a"},
                                           {"root/page.html", "page"},
                                           {"root/docs/index.html", "docs"},
                                           {"root/docs/.html", "hidden"},
                                           {"root/other/a.txt", "other a"},
                                           {"secret", "secret"}};
    static struct mk_str index[] = {MK_STR("index.html")};
    if (mk_test_folder_make(state) < 0)
        return -1;
    mk_test_mkdir("root");
    mk_test_mkdir("root/docs");
    mk_test_mkdir("root/other");
    mk_test_mkdir("root/empty");
    for (size_t i = 0; i < COUNT(files); i++)
        mk_test_write(files[i][0], mk_str_c(files[i][1]));
    mk_test_link("a.txt", "root/link");
    assert_int_equal(mkfifo(mk_test_path("root/fifo"), 0644), 0);
    return open_site(index, 1);
}

TEST_FILE(set_up, tear_down)
