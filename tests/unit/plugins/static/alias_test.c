// SPDX-License-Identifier: Apache-2.0
/* Aliases: which paths one takes from another, what a section may say, and where a path leads. */
#include "folder.h"

#include "conf/conf.h"
#include "server/generation/generation.h"

#include <errno.h>

#include "plugins/static/static.h"

TEST(matches)
{
    static const struct {
        const char *text;
        bool good;
    } cases[] = {
        {"/a", true},     {"/", true},     {"/a/", true},      {"=/a", true},   {"/a..b", true},  {"/...", true},
        {"*.css", false}, {"/a/*", false}, {"/a/../b", false}, {"/./a", false}, {"/a//", false},  {"/a/..", false},
        {"=/..", false},  {"=//a", false}, {"a", false},       {"/a?", false},  {"=/a/.", false}, {"**/a", false},
    };
    struct mk_arena arena;
    char text[256];
    struct mk_buf error;
    mk_arena_init(&arena, NULL, 8192, NULL, 0);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct mk_pattern match = {0};
        struct mk_str word = mk_str_c(cases[i].text);
        struct mk_conf_value value = {.text = word, .words = &word, .n = 1};
        mk_buf_init_fixed(&error, text, sizeof(text));
        if (mk__static_alias_keys[0].parse(&value, &match, &arena, &error) != (cases[i].good ? 0 : -EINVAL))
            fail_msg("%s: %s", cases[i].text, mk_buf_cstr(&error));
        assert_int_equal(error.len == 0, cases[i].good);
    }
    mk_arena_release(&arena);
}

/* ── a host with some ── */

static const struct mk_conf_section section = {.name = "ALIAS",
                                               .scope = MK_CONF_SCOPE_HOST,
                                               .flags = MK_CONF_REPEAT,
                                               .size = sizeof(struct alias_rule),
                                               .keys = mk__static_alias_keys};
static struct static_settings settings;
static struct static_host host = {.n_tries = 3, .codings = {MK_CODING_GZIP}, .n_codings = 1};
static struct mk_generation generation;
static struct mk_host owner = {.generation = &generation};
static struct static_site site = {.settings = &settings, .host = &host};

static int load(const char *format)
{
    char text[2000];
    snprintf(text, sizeof(text), format, mk_test_folder, mk_test_folder, mk_test_folder);
    generation.conf = mk__conf_new();
    assert_int_equal(mk__conf_declare(generation.conf, &section, "static"), 0);
    generation.set = mk__conf_set_new(generation.conf, MK_CONF_SCOPE_SERVER);
    owner.set = mk__conf_set_new(generation.conf, MK_CONF_SCOPE_HOST);
    mk__conf_read_text(generation.conf, owner.set, "test", mk_str_c(text));
    assert_int_equal(mk__conf_check(generation.conf, owner.set), 0);
    return mk__static_alias_load(&owner, &site, &section);
}

static void unload(void)
{
    mk__static_alias_free(&site);
    assert_null(site.aliases);
    mk__conf_free(generation.conf);
}

TEST(places)
{
    static const struct {
        const char *path, *rest, *prefix; /* no rest: none */
    } cases[] = {
        {"/a", "", "/a"},   {"/a/", "/", "/a"},     {"/a/x/y", "/x/y", "/a"},  {"/ab", NULL, NULL},
        {"/b", NULL, NULL}, {"/b/x", "/x", "/b"},   {"/one", "/file", "/one"}, {"/one/", NULL, NULL},
        {"/", NULL, NULL},  {"/c/a/x", NULL, NULL}, {"/A/x", NULL, NULL},
    };
    unsigned before = mk_test_descriptors();
    assert_int_equal(load("[ALIAS]\n Match /a\n To %s/dir\n[ALIAS]\n Match /b/\n To %s/dir/\n"
                          "[ALIAS]\n Match =/one\n To %s/dir/file\n"),
                     0);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct static_location at = {&site, mk_str_c(cases[i].path), MK_STR_NONE};
        assert_int_equal(mk__static_alias_find(&at), cases[i].rest != NULL);
        assert_str_equal(at.path, cases[i].rest ? cases[i].rest : cases[i].path);
        assert_int_equal(at.site != &site, cases[i].rest != NULL);
        assert_int_equal(alias_needs_slash(&at), strcmp(cases[i].path, "/a") == 0);
        if (!cases[i].rest)
            continue;
        assert_str_equal(at.site->prefix, cases[i].prefix);
        assert_int_equal(at.site->host->n_tries, 0);
        assert_int_equal(at.site->host->n_codings, 1);
        assert_true(mk_str_eq(at.site->configured_path, mk_str_c(mk_test_path("dir"))));
    }
    struct static_location at = {&site, MK_STR("/one"), MK_STR_NONE};
    mk__static_alias_find(&at);
    struct find_result f = find_path(at.site, at.path, NULL, false);
    assert_int_equal(f.kind, FOUND_FILE);
    close(f.fd);
    unload();
    assert_int_equal(mk_test_descriptors(), before);
}

/* All of them are reported at once, and nothing stays behind. */
TEST(what_cannot_be_opened)
{
    unsigned before = mk_test_descriptors();
    assert_int_equal(load("[ALIAS]\n Match /a\n To %s/none\n[ALIAS]\n Match /a/b\n To %s/dir\n"
                          "[ALIAS]\n Match =/one\n To %s/dir\n[ALIAS]\n Match /ok\n To /\n"),
                     -EINVAL);
    assert_int_equal(mk__conf_errors(generation.conf), 3);
    unload();
    assert_int_equal(mk_test_descriptors(), before);
}

static int load_some(void *ctx)
{
    unsigned before = mk_test_descriptors();
    (void)ctx;
    int err = mk__static_alias_load(&owner, &site, &section);
    mk__static_alias_free(&site);
    assert_int_equal(mk_test_descriptors(), before);
    return err;
}

TEST(without_memory)
{
    assert_int_equal(load("[ALIAS]\n Match /a\n To %s/dir\n[ALIAS]\n Match =/b\n To %s/dir/file\n"), 0);
    mk__static_alias_free(&site);
    assert_int_equal(mk_test_failing_allocs(load_some, NULL), 2); /* two aliases */
    unload();
}

static int set_up(void **state)
{
    if (mk_test_folder_make(state) < 0)
        return -1;
    mk_test_mkdir("dir");
    mk_test_write("dir/file", MK_STR("file"));
    return 0;
}

TEST_FILE(set_up, mk_test_folder_remove)
