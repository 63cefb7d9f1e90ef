// SPDX-License-Identifier: Apache-2.0
/* Templates: what they write, and where the mistakes of those are that cannot be read. */
#include "plugins/dirlisting/template.h"

#include "testing.h"

#include <errno.h>

static struct mk_str name, none;

static struct mk_str get_name(void *ctx)
{
    (void)ctx;
    return name;
}

static struct mk_str get_none(void *ctx)
{
    (void)ctx;
    return none;
}

static void write_block(struct mk_buf *out, void *ctx)
{
    mk_buf_addf(out, "<i>%s</i>", (const char *)ctx);
}

static const struct template_field fields[] = {
    {"name", TEMPLATE_TEXT, .text = get_name},
    {"lines", TEMPLATE_LINES, .text = get_name},
    {"page_url", TEMPLATE_URL, .text = get_name},
    {"block", TEMPLATE_HTML, .text = get_name, .block = write_block},
    {"nothing", TEMPLATE_TEXT, .text = get_none},
    {"target_name", TEMPLATE_TEXT, true, .text = get_name},
    {0},
};

static struct mk_arena arena;
static struct template_codes codes;
static struct template_parser parser;
static struct template_error error;
static struct template parsed;

static int parse(struct mk_str text, bool of_entry)
{
    codes.n = 0;
    parser = (struct template_parser){fields, &arena, &codes, {0}};
    return template_parse(&parser, text, of_entry, &parsed, &error);
}

static struct mk_str render(void)
{
    static char storage[8192];
    struct mk_buf out;
    char ctx[] = "ctx";
    mk_buf_init_fixed(&out, storage, sizeof(storage));
    template_write(&parsed, &out, ctx);
    assert_int_equal(out.err, 0);
    return mk_buf_str(&out);
}

TEST(writes)
{
    static const struct {
        const char *text, *html;
    } rows[] = {
        {"", ""},
        {"<p>100%</p> %_ %_x 50%_name", "<p>100%</p> %_ %_x 50%_name"},
        {"a%_name_%b", "aA&lt;b&gt;&quot; /?\xe2\x90\x8a"
                       "b"},
        {"<p title=\"%_name_%\">", "<p title=\"A&lt;b&gt;&quot; /?\xe2\x90\x8a\">"},
        {"<a href='?q=%_name_%'>", "<a href='?q=A%3Cb%3E%22%20%2F%3F%0A'>"},
        {"<a href=\"%_page_url_%\">", "<a href=\"A&lt;b&gt;&quot; /?\xe2\x90\x8a\">"},
        {"<pre>%_lines_%</pre>", "<pre>A&lt;b&gt;&quot; /?\n</pre>"},
        {"<title>%_name_%</title>", "<title>A&lt;b&gt;&quot; /?\xe2\x90\x8a</title>"},
        {"<p>%_block_%</p>", "<p><i>ctx</i></p>"},
        {"%_nothing_%", ""},
        {"a%_if_name_%b%_end_%c", "abc"},
        {"a%_if_nothing_%b%_end_%c", "ac"},
        {"a%_if_not_name_%b%_end_%c", "ac"},
        {"a%_if_not_nothing_%b%_end_%c", "abc"},
        {"%_if_block_%%_if_nothing_%a%_name_%%_end_%b%_end_%", "b"},
        {"%_if_nothing_%%_if_name_%a%_end_%b%_end_%c", "c"},
        {"<p %_if_name_%class=\"x\"%_end_%>", "<p class=\"x\">"},
        {"<style>p { width: 50%_x; }</style>", "<style>p { width: 50%_x; }</style>"},
        {"%_target_name_%", "A&lt;b&gt;&quot; /?\xe2\x90\x8a"},
    };
    name = MK_STR("A<b>\" /?\n");
    for (size_t i = 0; i < COUNT(rows); i++) {
        if (parse(mk_str_c(rows[i].text), true) != 0)
            fail_msg("%s: %s", rows[i].text, error.text);
        assert_str_equal(render(), rows[i].html);
    }
}

static const struct {
    const char *text;
    unsigned line, column;
    const char *sentence;
} mistakes[] = {
    {"\n a %_nam_%", 2, 4, "there is no field %_nam_%; did you mean %_name_%?"},
    {"%_xyzxyzxyz_%", 1, 1, "there is no field %_xyzxyzxyz_%"},
    {"%_if_naem_%%_end_%", 1, 1, "there is no field %_naem_%; did you mean %_name_%?"},
    {"%_target_name_%", 1, 1, "the field %_target_name_% is one of an entry, for entry.theme only"},
    {"<script>\nx = '%_name_%'</script>", 2, 6,
     "the field %_name_% cannot be in a script, a style sheet or similar; an attribute such as data-x=\"%_field_%\" "
     "can "
     "have it"},
    {"<p onclick=\"%_name_%\">", 1, 13, "the field %_name_% cannot be in an attribute that holds code or several URLs"},
    {"<a href=%_page_url_%>", 1, 9,
     "the field %_page_url_% cannot be in a value without quotes: write name=\"%_field_%\""},
    {"<p %_name_%>", 1, 4, "the field %_name_% cannot be in a tag, outside a value"},
    {"<%_name_%>", 1, 2, "the field %_name_% cannot be in a tag, outside a value"},
    {"<!-- %_name_% -->", 1, 6, "the field %_name_% cannot be in a comment"},
    {"<p title=\"%_block_%\">", 1, 11, "the field %_block_% is HTML, which cannot be in an attribute"},
    {"%_end_%", 1, 1, "this %_end_% has no %_if_..._% before it"},
    {"a\n%_if_name_%", 2, 1, "this condition has no %_end_%"},
    {"<p%_if_name_%>%_end_%", 1, 15,
     "between %_if_..._% and %_end_% a tag, quote or comment begins or ends, but not both"},
    {"<script>%_if_name_%1%_end_%</script>", 1, 9, "a script or style sheet cannot have conditions"},
    {"<script><!--</script>", 1, 10, "a script cannot have \"<!\", which may hide its end"},
    {"<p", 1, 3, "the text ends within a tag, a comment, or a script, style or title"},
    {"<title>x", 1, 9, "the text ends within a tag, a comment, or a script, style or title"},
    {"a\rb", 1, 2, "the text has a carriage return that no newline follows"},
};

TEST(mistakes)
{
    for (size_t i = 0; i < COUNT(mistakes); i++) {
        assert_int_equal(parse(mk_str_c(mistakes[i].text), false), -EINVAL);
        assert_string_equal(error.text, mistakes[i].sentence);
        assert_int_equal(error.line, mistakes[i].line);
        assert_int_equal(error.column, mistakes[i].column);
    }
    assert_int_equal(parse(MK_STR("a\0b"), false), -EINVAL);
    assert_string_equal(error.text, "the text has a NUL byte");
}

static void repeat(struct mk_buf *out, const char *text, unsigned n)
{
    mk_buf_init(out, 1 << 20);
    while (n--)
        mk_buf_adds(out, mk_str_c(text));
}

TEST(limits)
{
    static const struct {
        const char *text;
        unsigned good;
    } rows[] = {
        {"%_name_%", TEMPLATE_PIECES_MAX},
        {"<style></style>", TEMPLATE_CODES_MAX},
        {"x", TEMPLATE_BYTES_MAX},
    };
    struct mk_buf text;
    for (size_t i = 0; i < COUNT(rows); i++)
        for (unsigned more = 0; more < 2; more++) {
            repeat(&text, rows[i].text, rows[i].good + more);
            assert_int_equal(parse(mk_buf_str(&text), true), more ? -EINVAL : 0);
            mk_buf_release(&text);
        }
    for (unsigned more = 0; more < 2; more++) {
        struct mk_buf ends;
        repeat(&text, "%_if_name_%", TEMPLATE_DEPTH_MAX + more);
        repeat(&ends, "%_end_%", TEMPLATE_DEPTH_MAX + more);
        mk_buf_adds(&text, mk_buf_str(&ends));
        assert_int_equal(parse(mk_buf_str(&text), true), more ? -EINVAL : 0);
        mk_buf_release(&text);
        mk_buf_release(&ends);
    }
}

TEST(codes)
{
    assert_int_equal(parse(MK_STR("<style>a{}</style>%_name_%<script type=x>b<c</script ><title>t</title>"), false), 0);
    assert_int_equal(codes.n, 2);
    assert_str_equal(codes.items[0].text, "a{}");
    assert_false(codes.items[0].is_script);
    assert_str_equal(codes.items[1].text, "b<c");
    assert_true(codes.items[1].is_script);
    assert_int_equal(parse(MK_STR("<script></script>"), false), 0);
    assert_str_equal(codes.items[0].text, "");
}

/* Each allocation fails once. */
TEST(without_memory)
{
    for (unsigned kilobytes = 1; kilobytes < 4; kilobytes++) {
        struct mk_arena small;
        struct template t;
        struct mk_buf text;
        repeat(&text, "%_name_%", 1000);
        mk_arena_init(&small, NULL, kilobytes * 1024, NULL, 0);
        parser = (struct template_parser){fields, &small, &codes, {0}};
        assert_int_equal(template_parse(&parser, mk_buf_str(&text), false, &t, &error), -ENOMEM);
        mk_arena_release(&small);
        mk_buf_release(&text);
    }
}

static int begin(void **state)
{
    (void)state;
    mk_arena_init(&arena, NULL, 64 << 20, NULL, 0);
    return 0;
}

static int end(void **state)
{
    (void)state;
    mk_arena_release(&arena);
    return 0;
}

TEST_FILE(begin, end)
