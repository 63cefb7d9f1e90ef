// SPDX-License-Identifier: Apache-2.0
/* JSON: the commas, the values, and strings that are valid whatever the bytes are. */
#include "testing.h"

#include <monkey/kit/json.h>

#include <math.h>

static char storage[4096];
static struct mk_buf out;

static int begin(void **state)
{
    (void)state;
    mk_buf_init_fixed(&out, storage, sizeof(storage));
    return 0;
}

TEST(values, begin)
{
    struct mk_address address;
    assert_int_equal(mk_address_parse(MK_STR("2001:db8::1"), &address), 0);
    mk_json_open(&out, NULL, '{');
    mk_json_cstr(&out, "a", "b");
    mk_json_open(&out, "b", '[');
    mk_json_number(&out, NULL, INT64_MIN);
    mk_json_open(&out, NULL, '{');
    mk_json_close(&out, '}');
    mk_json_open(&out, NULL, '[');
    mk_json_close(&out, ']');
    mk_json_null(&out, NULL);
    mk_json_close(&out, ']');
    mk_json_bool(&out, "c", true);
    mk_json_bool(&out, "d", false);
    mk_json_null(&out, "e");
    mk_json_address(&out, "f", &address);
    mk_json_format(&out, "g", "%d of %s", 3, "it");
    mk_json_key(&out, MK_STR("\""));
    mk_json_number(&out, NULL, -9007199254740993);
    mk_json_close(&out, '}');
    assert_str_equal(mk_buf_str(&out), "{\"a\":\"b\",\"b\":[-9223372036854775808,{},[],null],\"c\":true,\"d\":false,"
                                       "\"e\":null,\"f\":\"2001:db8::1\",\"g\":\"3 of it\","
                                       "\"\\\"\":-9007199254740993}");
}

TEST(real_numbers, begin)
{
    static const double values[] = {0, 1.25, 1795279470.671, 100, -0.0000004, NAN, INFINITY, 1e15, 2e15};
    mk_json_open(&out, NULL, '[');
    for (size_t i = 0; i < COUNT(values); i++)
        mk_json_real(&out, NULL, values[i]);
    mk_json_close(&out, ']');
    assert_str_equal(mk_buf_str(&out), "[0,1.25,1795279470.671,100,-0,null,null,1000000000000000,null]");
}

TEST(lines_and_prefixes, begin)
{
    mk_buf_adds(&out, MK_STR("data: "));
    for (unsigned i = 0; i < 2; i++) {
        mk_json_open(&out, NULL, '{');
        mk_json_number(&out, "n", i);
        mk_json_close_line(&out);
    }
    assert_str_equal(mk_buf_str(&out), "data: {\"n\":0}\n{\"n\":1}\n");
}

#define R "\xef\xbf\xbd"

TEST(strings)
{
    static const struct {
        const char *text, *json;
    } cases[] = {
        {"", "\"\""},
        {"a\"b\\c/d", "\"a\\\"b\\\\c/d\""},
        {"\n\t\x1b[31m\x7f\x01", "\"\\u000a\\u0009\\u001b[31m\\u007f\\u0001\""},
        {"</script>&amp;'", "\"</script>&amp;'\""},
        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\""},
        {"\xff", "\"" R "\""},
        {"a\xc3", "\"a" R "\""},
        {"\xc3(", "\"" R "(\""},
        {"\xc0\xaf", "\"" R R "\""},             /* overlong */
        {"\xe0\x80\xaf", "\"" R R R "\""},       /* overlong */
        {"\xed\xa0\x80", "\"" R R R "\""},       /* a surrogate */
        {"\xf4\x90\x80\x80", "\"" R R R R "\""}, /* above U+10FFFF */
        {"\xf0\x9f\x90x", "\"" R "x\""},         /* a maximal part is one */
        {"\xe2\x82\xe2\x82\xac", "\"" R "\xe2\x82\xac\""},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char *text = mk_test_guarded(cases[i].text, strlen(cases[i].text));
        mk_buf_init_fixed(&out, storage, sizeof(storage));
        mk_json_str(&out, NULL, mk_str(text, strlen(cases[i].text)));
        mk_test_unguard(text, strlen(cases[i].text));
        assert_str_equal(mk_buf_str(&out), cases[i].json);
    }
}

TEST(a_long_text, begin)
{
    char text[3000];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    mk_json_format(&out, "s", "%s", text);
    assert_int_equal(out.len, 4 + 2 + 1023);
}

/* The buffer is full in each place. */
TEST(no_room)
{
    for (size_t size = 1; size < 24; size++) {
        struct mk_buf small;
        mk_buf_init_fixed(&small, storage, size);
        mk_json_open(&small, NULL, '{');
        mk_json_cstr(&small, "key", "text");
        mk_json_number(&small, "n", 1);
        mk_json_close(&small, '}');
        assert_int_equal(small.err != 0, size < strlen("{\"key\":\"text\",\"n\":1}"));
    }
}
