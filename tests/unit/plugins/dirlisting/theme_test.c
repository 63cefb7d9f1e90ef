// SPDX-License-Identifier: Apache-2.0
/* Themes: their files, what is wrong with those that cannot be read, and each allocation failing once. */
#include "folder.h"
#include "plugins/dirlisting/template.h"
#include "testing.h"

#include <errno.h>

TEST(policies)
{
    static const struct template_codes codes = {
        .items = {{MK_STR("a{}"), false}, {MK_STR("1"), true}, {MK_STR("2"), true}}, .n = 3};
    static const struct template_codes none = {.n = 0};
    static const struct markup files = {.has_script_file = true, .has_style_file = true}, plain = {0};
    char storage[1024];
    struct mk_buf out;
    mk_buf_init_fixed(&out, storage, sizeof(storage));
    policy_write(&out, &codes, &plain);
    assert_str_equal(mk_buf_str(&out), "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors "
                                       "'self'; font-src 'self'; img-src 'self' data:; style-src "
                                       "'sha256-X1RutGBrXCt9KkSaXMK7tHftWiRscFHOhxsS8tv8hBk='; script-src "
                                       "'sha256-a4ayc/80/OGda4BO/1o/V0etpOqiLx1JwB5S3beHW0s=' "
                                       "'sha256-1HNeOiZeFu7gP1lxi5tdAwGcB9i2xR+Q2jpmbuwTqzU='");
    out.len = 0;
    policy_write(&out, &none, &files);
    assert_non_null(strstr(mk_buf_cstr(&out), "style-src 'self'; script-src 'self'"));
    out.len = 0;
    policy_write(&out, &none, &plain);
    assert_non_null(strstr(mk_buf_cstr(&out), "style-src 'none'; script-src 'none'"));
}

static struct mk_str get_name(void *ctx)
{
    (void)ctx;
    return MK_STR("a&b");
}

static const struct template_field fields[] = {
    {"path", TEMPLATE_TEXT, .text = get_name},
    {"target_name", TEMPLATE_TEXT, true, .text = get_name},
    {0},
};

static char reason[2048];

static void write_theme(const char *header, const char *entry, const char *footer)
{
    mk_test_write("theme/header.theme", mk_str_c(header));
    mk_test_write("theme/entry.theme", mk_str_c(entry));
    mk_test_write("theme/footer.theme", mk_str_c(footer));
}

static int load(struct theme *theme, struct mk_arena *arena)
{
    struct mk_buf error;
    unsigned before = mk_test_descriptors();
    mk_buf_init_fixed(&error, reason, sizeof(reason));
    int err = theme_load(theme, mk_str_c(mk_test_path("theme")), fields, arena, &error);
    mk_buf_cstr(&error);
    assert_int_equal(mk_test_descriptors(), before);
    return err;
}

static void assert_loads(int expected, const char *sentence)
{
    struct mk_arena arena;
    struct theme theme;
    mk_arena_init(&arena, NULL, 1 << 20, NULL, 0);
    assert_int_equal(load(&theme, &arena), expected);
    if (!strstr(reason, sentence))
        fail_msg("\"%s\" has no \"%s\"", reason, sentence);
    mk_arena_release(&arena);
}

TEST(loads)
{
    struct mk_arena arena;
    struct theme theme;
    struct mk_buf out;
    char storage[64];
    write_theme("%_path_%\r\n<style>p{}</style>", "<li>%_target_name_%", "<script>1</script>");
    mk_arena_init(&arena, NULL, 1 << 20, NULL, 0);
    assert_int_equal(load(&theme, &arena), 0);
    mk_buf_init_fixed(&out, storage, sizeof(storage));
    template_write(&theme.header, &out, NULL);
    template_write(&theme.entry, &out, NULL);
    template_write(&theme.footer, &out, NULL);
    assert_str_equal(mk_buf_str(&out), "a&amp;b\n<style>p{}</style><li>a&amp;b<script>1</script>");
    assert_true(mk_str_starts(theme.policy, MK_STR("default-src 'none'; ")));
    mk_arena_release(&arena);
}

TEST(mistakes)
{
    write_theme("a", "%_target_name_%", "\n %_target_name_%");
    assert_loads(-EINVAL, "/theme/footer.theme:2:2: the field %_target_name_% is one of an entry");
    write_theme("a\r", "b", "c");
    assert_loads(-EINVAL, "/theme/header.theme:1:2: the text has a carriage return");
    write_theme("a", "<p", "c");
    assert_loads(-EINVAL, "/theme/entry.theme:1:3: the text ends within a tag");
    assert_int_equal(remove(mk_test_path("theme/footer.theme")), 0);
    write_theme("a", "b", "c");
    assert_int_equal(remove(mk_test_path("theme/footer.theme")), 0);
    assert_loads(-EINVAL, "/theme/footer.theme, which cannot be read: No such file");
    mk_test_mkdir("theme/footer.theme");
    assert_loads(-EINVAL, "/theme/footer.theme, which is not a regular file");
    assert_int_equal(remove(mk_test_path("theme/footer.theme")), 0);
    mk_test_link("../secret", "theme/footer.theme");
    mk_test_write("secret", MK_STR("x"));
    assert_loads(-EINVAL, "/theme/footer.theme, which cannot be read: ");
    assert_int_equal(remove(mk_test_path("theme/footer.theme")), 0);
}

static int load_once(void *ctx)
{
    struct mk_arena arena;
    struct theme theme;
    (void)ctx;
    mk_arena_init(&arena, NULL, 1 << 20, NULL, 0);
    int err = load(&theme, &arena);
    mk_arena_release(&arena);
    return err;
}

TEST(without_memory)
{
    write_theme("%_path_%<style>p{}</style>", "%_target_name_%", "%_path_%");
    assert_true(mk_test_failing_allocs(load_once, NULL) > 0);
}

static int begin(void **state)
{
    int err = mk_test_folder_make(state);
    mk_test_mkdir("theme");
    return err;
}

TEST_FILE(begin, mk_test_folder_remove)
