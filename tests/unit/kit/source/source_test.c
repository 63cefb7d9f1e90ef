// SPDX-License-Identifier: Apache-2.0
/* Which names are those of programs and of copies of them. */
#include "testing.h"

#include "server/generation/generation.h"

#include <monkey/kit/source.h>

static struct mk_generation generation;
static struct mk_host host = {.generation = &generation};
static struct mk_arena arena;

static int open_arena(void **state)
{
    (void)state;
    mk_arena_init(&arena, NULL, 1 << 20, NULL, 0);
    return 0;
}

static int close_arena(void **state)
{
    (void)state;
    mk_arena_release(&arena);
    return 0;
}

static bool is_taken(const struct mk_pattern *pattern, const char *path, bool only_names)
{
    const struct mk_source_query of = {.host = &host, .kind = MK_SOURCE_PATH, .name = mk_str_c(path)};
    return mk_source_is_taken(&of, pattern, only_names);
}

TEST(extensions)
{
    static const struct {
        const char *name;
        bool is_path_of_one, is_file_of_one;
    } cases[] = {
        {"/x.php", true, true},
        {"/.php", true, true},
        {"/x.PhP", true, true},
        {"/x.php.gz", true, true},
        {"/x.php.br", true, true},
        {"/x.php.ZST", true, true},
        {"/x.php.bak", true, true},
        {"/x.php.old", true, true},
        {"/x.php.orig", true, true},
        {"/x.php~", true, true},
        {"/#x.php#", true, true},
        {"/x.php.save", true, true},
        {"/x.php.dpkg-old", true, true},
        {"/x.php.ucf-dist", true, true},
        {"/x.php.rpmsave", true, true},
        {"/x.php.rej", true, true},
        {"/x.php,v", true, true},
        {"/x.php-", true, true},
        {"/x.php.tar.xz", true, true},
        {"/x.php.1", true, true},
        {"/x.php.20241231.gz", true, true},
        {"/x.php.~12~", true, true},
        {"/x.php.bak2", true, true},
        {"/x.php7", false, false},
        {"/x.php-7", false, false},
        {"/x.php 7", false, false},
        {"/x.php.a1", false, false},
        {"/12", false, false},
        {"/.1", false, false},
        {"/x.php.txt", false, false},
        {"/x.php.bak.gz~", true, true},
        {"/.x.php.swp", true, true},
        {"/x.php.", true, true},
        {"/x.php. .", true, true},
        {"/x.php::$data", true, true},
        {"/x.php/", true, true},
        {"/x.php/a.jpg", true, false},
        {"/x.php.bak/a.jpg", true, false},
        {"/a.jpg/x.php", true, true},
        {"/x.php/.", true, false},
        {"/x.phps", false, false},
        {"/x.phtml", false, false},
        {"/x.php.txt", false, false},
        {"/x.\xe2\x93\x9fhp", false, false}, /* a letter whose lower case is no "p" */
        {"/x.ph\xc5\xbf", false, false},
        {"/xphp", false, false},
        {"/php", false, false},
        {"/", false, false},
        {"/.gz", false, false},
        {"/~", false, false},
        {"//", false, false},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct mk_str name = mk_str_c(cases[i].name);
        bool is_path = mk_source_has_extension(MK_SOURCE_PATH, name, MK_STR(".php"));
        bool is_file = mk_source_has_extension(MK_SOURCE_FILE, name, MK_STR(".php"));
        if (is_path != cases[i].is_path_of_one || is_file != cases[i].is_file_of_one)
            fail_msg("%s: %d, %d", cases[i].name, is_path, is_file);
    }
}

/* An extension that is also one of a copy is compared before it is stripped. */
TEST(an_extension_of_copies)
{
    assert_true(mk_source_has_extension(MK_SOURCE_PATH, MK_STR("/x.gz"), MK_STR(".gz")));
    assert_false(mk_source_has_extension(MK_SOURCE_PATH, MK_STR("/x.br"), MK_STR(".gz")));
}

TEST(stripped)
{
    static const char *const cases[][2] = {{"/a.gz", "/a"}, {"/a.bak.old", "/a"}, {"/~", "/"},
                                           {"~", "~"},      {"/a", "/a"},         {"...", "."}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct mk_str s = mk_source_strip(mk_str_c(cases[i][0]));
        if (!mk_str_eq(s, mk_str_c(cases[i][1])))
            fail_msg("%s: %.*s", cases[i][0], MK_STR_ARG(s));
    }
}

TEST(patterns)
{
    static const struct {
        const char *pattern, *path;
        bool matches;
    } cases[] = {
        {"/cgi", "/cgi/x", true},       {"/cgi", "/cgi", true},          {"/cgi", "/cgis", false},
        {"*.cgi", "/a/x.cgi", true},    {"*.cgi", "/a/x.cgi.bak", true}, {"*.cgi", "/a/.x.cgi.swp", true},
        {"=/run", "/run~", true},       {"=/run", "/.run.swp", true},    {"=/run", "/.run", false},
        {"=/run", "/.runs.swp", false}, {"*.cgi", "/a/x.txt", false},    {"=/run", "/.swp", false},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct mk_pattern pattern;
        struct mk_buf error;
        char text[128];
        mk_buf_init_fixed(&error, text, sizeof(text));
        assert_int_equal(mk_pattern_parse(&pattern, mk_str_c(cases[i].pattern), NULL, &error), 0);
        if (is_taken(&pattern, cases[i].path, false) != cases[i].matches)
            fail_msg("%s, %s", cases[i].pattern, cases[i].path);
    }
}

static struct mk_pattern parse(const char *text)
{
    struct mk_pattern pattern;
    assert_int_equal(mk_pattern_parse(&pattern, mk_str_c(text), &arena, NULL), 0);
    return pattern;
}

/* Which patterns name files, and which folders or all of a site. */
TEST(patterns_of_names, open_arena, close_arena)
{
    static const struct {
        const char *pattern, *path;
        bool is_by_name, is_whole_site;
    } cases[] = {
        {"*.php", "/a/x.php", true, false},
        {"*", "/a/x.php", false, true},
        {"=/x.php", "/x.php", true, false},
        {"/app", "/app/x.php", false, false},
        {"/app", "/app", false, false},
        {"/", "/x.php", false, true},
        {"/app/*.php", "/app/x.php", true, false},
        {"/app/**", "/app/x.php", false, false},
        {"~\\.php$", "/a/x.php", true, false},
        {"~\\.php(/|$)", "/a/x.php", true, false},
        {"~^/$|\\.php$", "/x.php", true, false},
        {"~^/app/", "/app/x.php", false, false},
        {"~^/app/.*\\.php$", "/app/x.php", true, false},
        {"~^/(?!static/)", "/x.php", false, true},
        {"~^/[^.]*$", "/about", false, true},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct mk_pattern pattern = parse(cases[i].pattern);
        if (mk_source_is_by_name(&pattern, mk_str_c(cases[i].path)) != cases[i].is_by_name ||
            mk_source_is_whole_site(&pattern) != cases[i].is_whole_site)
            fail_msg("%s, %s", cases[i].pattern, cases[i].path);
    }
}

TEST(only_names, open_arena, close_arena)
{
    static const struct {
        const char *pattern, *path;
        bool is_taken;
    } cases[] = {
        {"/", "/x.php", false},           {"/app", "/app/x.php", false},  {"*.php", "/x.php", true},
        {"*.php", "/x.php.bak", true},    {"*.php", "/.x.php.swp", true}, {"~^/$|\\.php$", "/x.php~", true},
        {"~^/app/", "/app/x.php", false}, {"=/x.php", "/x.php.gz", true},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct mk_pattern pattern = parse(cases[i].pattern);
        if (is_taken(&pattern, cases[i].path, true) != cases[i].is_taken)
            fail_msg("%s, %s", cases[i].pattern, cases[i].path);
    }
}

TEST(examples, open_arena, close_arena)
{
    static const struct {
        const char *pattern, *name; /* NULL: none */
    } cases[] = {
        {"*.php", "/index.php"},
        {"=/run", "/run"},
        {"/app", "/app/x"},
        {"/app/", "/app/x"},
        {"/", NULL},
        {"/a/*.foo", "/a/x.foo"},
        {"*.foo", "/x.foo"},
        {"~\\.cgi$", "/index.cgi"},
        {"~^/a/b$", NULL},
        {"~^/(?!static)", NULL},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct mk_pattern pattern = parse(cases[i].pattern);
        char name[MK_SOURCE_EXAMPLE_BYTES] = "";
        assert_int_equal(mk_source_make_example(&pattern, name), cases[i].name != NULL);
        assert_string_equal(name, cases[i].name ? cases[i].name : "");
    }
}

TEST(long_paths)
{
    static char text[5000];
    struct mk_pattern pattern;
    struct mk_buf error;
    char message[128];
    memset(text, 'x', sizeof(text));
    memcpy(text, "/.", 2);
    memcpy(text + sizeof(text) - 5, ".swp", 5);
    mk_buf_init_fixed(&error, message, sizeof(message));
    assert_int_equal(mk_pattern_parse(&pattern, MK_STR("=/x"), NULL, &error), 0);
    assert_false(is_taken(&pattern, text, false));
}

TEST(folders)
{
    static const struct {
        const char *name, *folder;
        bool is_below;
    } cases[] = {
        {"/srv/cgi/a", "/srv/cgi", true}, {"/srv/cgi/a", "/srv/cgi/", true},
        {"/srv/cgi", "/srv/cgi", true},   {"/srv/cgi/", "/srv/cgi", true},
        {"/srv/cgi", "/srv/cgi/", true},  {"/srv/cgis", "/srv/cgi", false},
        {"/srv", "/srv/cgi", false},      {"/a", "/", true},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        if (mk_source_is_below(mk_str_c(cases[i].name), mk_str_c(cases[i].folder)) != cases[i].is_below)
            fail_msg("%s, %s", cases[i].name, cases[i].folder);
}

static int add_extensions(void *ctx)
{
    static const char *const texts[] = {".php", ".py", ".php", ".py"};
    struct mk_source_extensions *all = ctx;
    int err = 0;
    for (size_t i = 0; i < COUNT(texts) && err == 0; i++)
        err = mk_source_add_extension(all, mk_str_c(texts[i]));
    bool has_all = mk_source_has_extension_of(MK_SOURCE_FILE, MK_STR("/a.py.bak"), all) &&
                   mk_source_has_extension_of(MK_SOURCE_PATH, MK_STR("/a.php/b"), all) &&
                   !mk_source_has_extension_of(MK_SOURCE_FILE, MK_STR("/a.txt"), all);
    assert_true(err < 0 || (has_all && all->n == 2));
    mk_source_release_extensions(all);
    *all = (struct mk_source_extensions){NULL, 0};
    return err;
}

TEST(extensions_of_sections)
{
    struct mk_source_extensions all = {NULL, 0};
    assert_false(mk_source_has_extension_of(MK_SOURCE_FILE, MK_STR("/a.php"), &all));
    assert_int_equal(mk_test_failing_allocs(add_extensions, &all), 2);
}
