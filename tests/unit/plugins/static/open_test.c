// SPDX-License-Identifier: Apache-2.0
/* Programs of other plugins below a root: by which names, paths and links they are missing. */
#include "plugins/static/static.h"

#include "site.h"

#include <errno.h>

#include "server/generation/generation.h"

#include <monkey/hooks.h>

static char folder[4200]; /* of programs */

static bool is_source(const struct mk_host *of, enum mk_source_name kind, struct mk_str name)
{
    assert_non_null(of);
    if (kind == MK_SOURCE_PATH)
        return memmem(name.p, name.len, ".php", 4) != NULL;
    return mk_str_starts(name, mk_str_c(folder));
}

static const struct mk_source_hooks script_sources = {.is_source = is_source};
static const struct mk_plugin scripts = {.name = "scripts", .sources = &script_sources};
static struct mk_generation generation = {.plugins = {&scripts}, .n_plugins = 1};
static struct mk_host owner = {.generation = &generation};

/* Returns what a lookup finds: the file's content, or "none". */
static const char *find(const char *path, bool sources)
{
    static char text[16];
    struct find_mode mode = {.sources = sources};
    struct find_result f = mk__static_find_path_with(&site, mk_str_c(path), &mode);
    if (f.kind != FOUND_FILE)
        return f.kind == FOUND_DIRECTORY ? "folder" : "none";
    ssize_t n = read(f.fd, text, sizeof(text) - 1);
    text[n < 0 ? 0 : n] = '\0';
    mk__static_open_release(&f);
    return text;
}

static void set_host(bool has_sources, int symlinks)
{
    owner.states[0] = has_sources ? &generation : NULL;
    settings.symlinks = symlinks;
    site.owner = &owner;
    mk__static_sources_init(&site);
}

static const struct {
    const char *path, *found[2]; /* SymLink Off, On */
} cases[] = {
    {"/a", {"a", "a"}},
    {"/x.php", {"none", "none"}},
    {"/cgi/run", {"none", "none"}},
    {"/", {"none", "none"}},
    {"/cgi/", {"none", "none"}},
    {"/sub/", {"sub", "sub"}},
    {"/link", {"none", "a"}},
    {"/notes", {"none", "none"}},
    {"/bin/run", {"none", "none"}},
    {"/x.php/", {"none", "none"}},
};

TEST(programs_are_missing)
{
    unsigned before = mk_test_descriptors();
    for (int mode = SYMLINKS_OFF; mode <= SYMLINKS_ON; mode += SYMLINKS_ON) {
        set_host(true, mode);
        for (size_t i = 0; i < COUNT(cases); i++) {
            const char *found = find(cases[i].path, false);
            if (strcmp(found, cases[i].found[mode == SYMLINKS_ON]) != 0)
                fail_msg("%s, %d: %s", cases[i].path, mode, found);
        }
    }
    assert_int_equal(mk_test_descriptors(), before);
}

TEST(the_plugin_that_runs_them_finds_them)
{
    for (int mode = SYMLINKS_OFF; mode <= SYMLINKS_ON; mode += SYMLINKS_ON) {
        set_host(true, mode);
        assert_string_equal(find("/x.php", true), "php");
        assert_string_equal(find("/", true), "index");
        assert_string_equal(find("/cgi/run", true), "run");
        assert_string_equal(find("/bin/run", true), mode == SYMLINKS_ON ? "run" : "none");
        int fd = mk__static_host_path_open(&site, MK_STR("/x.php"), MK_OPEN_SOURCE);
        assert_true(fd >= 0);
        close(fd);
        assert_int_equal(mk__static_host_path_open(&site, MK_STR("/x.php"), 0), -ENOENT);
    }
}

TEST(a_host_without_programs)
{
    set_host(false, SYMLINKS_ON);
    assert_int_equal(site.sources, SOURCES_NONE);
    assert_string_equal(find("/x.php", false), "php");
    assert_string_equal(find("/notes", false), "run");
    assert_string_equal(find("/", false), "index");
}

/* A folder of programs is not listed either, by none of its names. */
TEST(folders)
{
    static const struct {
        const char *path;
        bool found[2];
    } all[] = {{"/", {true, true}}, {"/sub/", {true, true}}, {"/cgi/", {false, false}}, {"/bin/", {false, false}}};
    for (int mode = SYMLINKS_OFF; mode <= SYMLINKS_ON; mode += SYMLINKS_ON) {
        set_host(true, mode);
        for (size_t i = 0; i < COUNT(all); i++) {
            int fd = mk__static_host_path_open(&site, mk_str_c(all[i].path), MK_OPEN_FOLDER);
            if ((fd >= 0) != all[i].found[mode == SYMLINKS_ON])
                fail_msg("%s, %d: %d", all[i].path, mode, fd);
            if (fd >= 0)
                close(fd);
        }
    }
}

/* A variant is a copy of the program that it is a variant of. */
TEST(variants)
{
    static struct mk_accept accept;
    host = (struct static_host){.codings = {MK_CODING_GZIP}, .n_codings = 1};
    set_host(true, SYMLINKS_OFF);
    mk_accept_encoding(MK_STR("gzip"), &accept);
    struct find_result f = find_path(&site, MK_STR("/page"), &accept, false);
    assert_int_equal(f.kind, FOUND_FILE);
    assert_int_equal(f.coding, MK_CODING_GZIP);
    mk__static_open_release(&f);
    f = find_path(&site, MK_STR("/x.php.gz"), &accept, false);
    assert_int_equal(f.kind, FOUND_NOTHING);
    host = (struct static_host){.n_codings = 0};
}

/* The path of an alias is that of its files. */
TEST(prefixes)
{
    set_host(true, SYMLINKS_OFF);
    site.prefix = MK_STR("/a.php");
    assert_string_equal(find("/a", false), "none");
    site.prefix = MK_STR_NONE;
    assert_string_equal(find("/a", false), "a");
}

static int set_up(void **state)
{
    static struct mk_str index[] = {MK_STR("index.php"), MK_STR("index.html")};
    if (mk_test_folder_make(state) < 0)
        return -1;
    mk_test_mkdir("root");
    mk_test_mkdir("root/sub");
    mk_test_mkdir("root/cgi");
    mk_test_write("root/a", MK_STR("a"));
    mk_test_write("root/x.php", MK_STR("php"));
    mk_test_write("root/x.php.gz", MK_STR("gz"));
    mk_test_write("root/page", MK_STR("page"));
    mk_test_write("root/page.gz", MK_STR("gz"));
    mk_test_write("root/index.php", MK_STR("index"));
    mk_test_write("root/sub/index.php", MK_STR("index"));
    mk_test_write("root/sub/index.html", MK_STR("sub"));
    mk_test_write("root/cgi/run", MK_STR("run"));
    mk_test_link("a", "root/link");
    mk_test_link("cgi/run", "root/notes");
    mk_test_link("cgi", "root/bin");
    snprintf(folder, sizeof(folder), "%s", mk_test_path("root/cgi"));
    return open_site(index, 2);
}

TEST_FILE(set_up, tear_down)
