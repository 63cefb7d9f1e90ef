// SPDX-License-Identifier: Apache-2.0
/* The package json: which texts are JSON, what is said of others, and the limits. */
#include <cjson/cJSON.h>

#include <duda/mem.h>
#include <duda/packages/json/json.h>

#include "testing.h"

#include <stdlib.h>

static const struct duda_api_mem heap = {.alloc = malloc, .realloc = realloc, .free = free};

/* ── texts ── */

static const char *const right[] = {
    "null",
    "true",
    "false",
    "0",
    "-0",
    "12",
    "-1.5",
    "1e5",
    "1E+5",
    "1e-5",
    "0.5",
    "0e0",
    "\"\"",
    "[]",
    "{}",
    " [ ] ",
    "\t{\n}\r",
    "[1,2]",
    "[1, [2, {}], \"x\"]",
    "{\"a\":1}",
    "{\"\":null}",
    "{\"a\":{\"b\":[true]},\"c\":\"d\"}",
    "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
    "\"\\u00e9\"",
    "\"\\uD83D\\uDE00\"",
    "\"\x7f\"",
    "\"\xc3\xa9\"",
    "\"\xe2\x82\xac\"",
    "\"\xf0\x9f\x98\x80\"",
    "\"\xf4\x8f\xbf\xbf\"",
    "\"\xed\x9f\xbf\"",
    "\"\xee\x80\x80\"",
    "\xef\xbb\xbf[1]",
    "123456789012345678901234567890123456789012345678901234567890123",
    "1.7976931348623157e308",
    "1e-400",
};

static const struct {
    const char *text, *error;
} wrong[] = {
    {"", "line 1, column 1: a value is missing at the end"},
    {" \n ", "line 2, column 2: a value is missing at the end"},
    {"nul", "line 1, column 1: this is no value"},
    {"True", "line 1, column 1: this is no value"},
    {"NaN", "line 1, column 1: this is no value"},
    {"'a'", "line 1, column 1: this is no value"},
    {"// a", "line 1, column 1: this is no value"},
    {"nullx", "line 1, column 5: more text behind the value"},
    {"1 2", "line 1, column 3: more text behind the value"},
    {"{} ]", "line 1, column 4: more text behind the value"},
    {"01", "line 1, column 1: a malformed number"},
    {"-", "line 1, column 1: a malformed number"},
    {"-a", "line 1, column 1: a malformed number"},
    {"-01", "line 1, column 1: a malformed number"},
    {"1.", "line 1, column 1: a malformed number"},
    {"1.e5", "line 1, column 1: a malformed number"},
    {"1e", "line 1, column 1: a malformed number"},
    {"[1e+]", "line 1, column 2: a malformed number"},
    {".5", "line 1, column 1: this is no value"},
    {"+1", "line 1, column 1: this is no value"},
    {"0x10", "line 1, column 2: more text behind the value"},
    {"1234567890123456789012345678901234567890123456789012345678901234",
     "line 1, column 1: a number with too many digits"},
    {"1e309", "a number is too large"},
    {"[0, -1.8e308]", "a number is too large"},
    {"\"", "line 1, column 1: a string without its end"},
    {"\"a\\\"", "line 1, column 1: a string without its end"},
    {"\"a\nb\"", "line 1, column 3: a control character in a string"},
    {"\"\\x\"", "line 1, column 2: an unknown escape sequence"},
    {"\"\\", "line 1, column 2: an unknown escape sequence"},
    {"\"\\u12g4\"", "line 1, column 2: \\u needs four hexadecimal digits"},
    {"\"\\u12", "line 1, column 2: \\u needs four hexadecimal digits"},
    {"\"a\\u0000\"", "line 1, column 3: a string cannot have \\u0000"},
    {"{\"a\\u0000b\":1}", "line 1, column 4: a string cannot have \\u0000"},
    {"\"\\ud800\"", "line 1, column 2: half of a surrogate pair"},
    {"\"\\ud800\\u0041\"", "line 1, column 2: half of a surrogate pair"},
    {"\"\\ud800\\ud800\"", "line 1, column 2: half of a surrogate pair"},
    {"\"\\udc00\"", "line 1, column 2: half of a surrogate pair"},
    {"\"\xff\"", "line 1, column 2: a string that is not UTF-8"},
    {"\"\xc0\x80\"", "line 1, column 2: a string that is not UTF-8"},
    {"\"\xc1\xbf\"", "line 1, column 2: a string that is not UTF-8"},
    {"\"\xe0\x9f\xbf\"", "line 1, column 2: a string that is not UTF-8"},
    {"\"\xed\xa0\x80\"", "line 1, column 2: a string that is not UTF-8"},
    {"\"\xf0\x8f\xbf\xbf\"", "line 1, column 2: a string that is not UTF-8"},
    {"\"\xf4\x90\x80\x80\"", "line 1, column 2: a string that is not UTF-8"},
    {"\"\xf5\x80\x80\x80\"", "line 1, column 2: a string that is not UTF-8"},
    {"\"\xe2\x82\"", "line 1, column 2: a string that is not UTF-8"},
    {"\"\xe2\x82", "line 1, column 2: a string that is not UTF-8"},
    {"\"\x80\"", "line 1, column 2: a string that is not UTF-8"},
    {"[", "line 1, column 2: a value is missing at the end"},
    {"[1", "line 1, column 3: a comma or ] is missing"},
    {"[1,", "line 1, column 4: a value is missing at the end"},
    {"[1,]", "line 1, column 4: this is no value"},
    {"[,1]", "line 1, column 2: this is no value"},
    {"[1 2]", "line 1, column 4: a comma or ] is missing"},
    {"[1}", "line 1, column 3: a comma or ] is missing"},
    {"]", "line 1, column 1: this is no value"},
    {"{", "line 1, column 2: a key in quotes is missing"},
    {"{1:2}", "line 1, column 2: a key in quotes is missing"},
    {"{\"a\"}", "line 1, column 5: a colon is missing"},
    {"{\"a\":}", "line 1, column 6: this is no value"},
    {"{\"a\":1,}", "line 1, column 8: a key in quotes is missing"},
    {"{\"a\":1]", "line 1, column 7: a comma or } is missing"},
    {"{\n  \"a\": 1\n  \"b\": 2\n}", "line 3, column 3: a comma or } is missing"},
};

static const struct duda_api_json *json_api(void)
{
    return duda_package_main()->api;
}

TEST(right_texts)
{
    json = json_api();
    for (size_t i = 0; i < COUNT(right); i++) {
        size_t len = strlen(right[i]);
        char *text = mk_test_guarded(right[i], len);
        json_t *root = json->parse_n(text, len), *again;
        if (!root)
            fail_msg("%s: %s", right[i], json->get_error());
        assert_null(json->get_error());
        char *printed = json->print(root), *small = json->print_unformatted(root);
        assert_non_null(again = json->parse(printed));
        assert_true(cJSON_Compare(root, again, 1));
        json->delete (again);
        assert_non_null(again = json->parse(small));
        assert_true(cJSON_Compare(root, again, 1));
        json->delete (again);
        json->delete (root);
        free(printed);
        free(small);
        mk_test_unguard(text, len);
    }
}

TEST(wrong_texts)
{
    json = json_api();
    for (size_t i = 0; i < COUNT(wrong); i++) {
        size_t len = strlen(wrong[i].text);
        char *text = mk_test_guarded(wrong[i].text, len);
        json_t *root = json->parse_n(text, len);
        if (root || strcmp(json->get_error(), wrong[i].error) != 0)
            fail_msg("%s: \"%s\" is not \"%s\"", wrong[i].text, root ? "none" : json->get_error(), wrong[i].error);
        mk_test_unguard(text, len);
    }
    assert_null(json->parse(NULL));
    assert_null(json->parse_n(NULL, 0));
    assert_string_equal(json->get_error(), "there is no text");
}

/* Each beginning of a text is wrong, and nothing behind it is read. */
TEST(beginnings)
{
    static const char text[] = "{\"a\": [1.5e3, \"\\u00e9\xe2\x82\xac\\ud83d\\ude00\", true], \"b\": {\"c\": null}}";
    json = json_api();
    for (size_t len = 0; len < sizeof(text) - 1; len++) {
        char *part = mk_test_guarded(text, len);
        assert_null(json->parse_n(part, len));
        assert_non_null(json->get_error());
        mk_test_unguard(part, len);
    }
}

TEST(nul_bytes)
{
    json = json_api();
    assert_null(json->parse_n("1\0", 2));
    assert_null(json->parse_n("\0001", 2));
    assert_null(json->parse_n("\"a\0b\"", 5));
    assert_string_equal(json->get_error(), "line 1, column 3: a control character in a string");
    assert_null(json->parse_n("[1,\0]", 5));
}

/* parse() reads the value at the beginning, as that of the original did. */
TEST(text_behind_a_value)
{
    static const char *const texts[] = {"{\"a\":7}x", " {\"a\":7} {", "{\"a\":7}\x01\xff"};
    json = json_api();
    for (size_t i = 0; i < COUNT(texts); i++) {
        json_t *root = json->parse(texts[i]);
        assert_int_equal(json->get_object_item(root, "A")->valueint, 7);
        json->delete (root);
        assert_null(json->parse_n(texts[i], strlen(texts[i])));
    }
    assert_null(json->parse("{\"a\":01}"));
}

TEST(a_key_twice)
{
    json = json_api();
    json_t *root = json->parse("{\"a\":1,\"A\":2,\"a\":3}");
    assert_int_equal(json->find(root, "a")->valueint, 1);
    assert_int_equal(json->find(root, "A")->valueint, 2);
    assert_int_equal(json->get_object_item(root, "A")->valueint, 1);
    assert_int_equal(json->get_array_size(root), 3);
    json->delete (root);
}

/* ── limits ── */

/* Writes `text` `n` times. Returns the end. */
static char *repeat(char *to, const char *text, size_t n)
{
    size_t len = strlen(text);
    for (size_t i = 0; i < n; i++)
        memcpy(to + i * len, text, len);
    return to + n * len;
}

/* Returns `n` times `open`, `middle`, and `n` times `close`. */
static char *nest(size_t n, const char *open, const char *middle, const char *close)
{
    char *text = malloc(n * (strlen(open) + strlen(close)) + strlen(middle) + 1);
    *repeat(repeat(repeat(text, open, n), middle, 1), close, n) = '\0';
    return text;
}

static void check_depth(size_t n, const char *open, const char *middle, const char *close)
{
    char *text = nest(n, open, middle, close);
    json_t *root = json->parse(text);
    if (n <= DUDA_JSON_DEPTH_MAX) {
        char *printed = json->print_unformatted(root);
        assert_string_equal(printed, text);
        free(printed);
    } else {
        assert_null(root);
        assert_non_null(strstr(json->get_error(), "too many arrays and objects within each other"));
    }
    json->delete (root);
    free(text);
}

TEST(depth)
{
    json = json_api();
    for (size_t n = DUDA_JSON_DEPTH_MAX - 1; n < DUDA_JSON_DEPTH_MAX + 2; n++) {
        check_depth(n, "[", "", "]");
        check_depth(n, "[", "1", "]");
        check_depth(n, "{\"a\":", "1", "}");
    }
    check_depth(2000000, "[", "1", "]");
}

TEST(how_many_values)
{
    static const char item[] = "0,";
    json = json_api();
    for (size_t n = DUDA_JSON_VALUES_MAX - 1; n <= DUDA_JSON_VALUES_MAX; n++) { /* and the array */
        char *text = nest(n, item, "]", "");
        memmove(text + 1, text, n * 2 - 1);
        text[0] = '[';
        json_t *root = json->parse(text);
        assert_int_equal(root != NULL, n < DUDA_JSON_VALUES_MAX);
        if (root)
            assert_int_equal(json->get_array_size(root), n);
        else
            assert_non_null(strstr(json->get_error(), "too many values"));
        json->delete (root);
        free(text);
    }
}

TEST(how_many_bytes)
{
    json = json_api();
    for (size_t len = DUDA_JSON_BYTES_MAX; len <= DUDA_JSON_BYTES_MAX + 1; len++) {
        char *text = malloc(len + 1);
        memset(text, 'x', len);
        text[0] = text[len - 1] = '"';
        text[len] = '\0';
        json_t *root = json->parse_n(text, len);
        assert_int_equal(root != NULL, len == DUDA_JSON_BYTES_MAX);
        if (root)
            assert_int_equal(strlen(root->valuestring), len - 2);
        else
            assert_string_equal(json->get_error(), "line 1, column 1: the text is too long");
        json->delete (root);
        free(text);
    }
}

static int set_up(void **state)
{
    (void)state;
    mem = &heap;
    return 0;
}

TEST_FILE(set_up)
