// SPDX-License-Identifier: Apache-2.0
/* What is no JSON for tokens and key sets, and where messages say that it is wrong. */
#include "plugins/auth/token.h"

#include "testing.h"

TEST(texts)
{
    static const struct {
        const char *text, *message; /* NULL: right */
    } cases[] = {
        {"{}", NULL},
        {" \r\n\t{ \"a\" : [ { } , 1.5e3, -0, true, null, \"\\ud83d\\ude00\" ] } \n", NULL},
        {"", "line 1, column 0: the text ends too early"},
        {"[]", "line 1, column 1: not an object"},
        {"{\"a\":1,\n\"a\":2}", "line 2, column 3: a name appears twice in an object"},
        {"{\"a\":{\"b\":1,\"\\u0062\":2}}", "line 1, column 20: a name appears twice in an object"},
        {"{} {}", "line 1, column 4: text behind the object"},
        {"{\"a\":1", "line 1, column 6: the text ends too early"},
        {"{\"secret\":hunter2}", "line 1, column 16: not JSON"},
        {"{'a':1}", "line 1, column 2: not JSON"},
        {"{\"a\":01}", "line 1, column 6: not JSON"},
        {"{\"a\":1,}", "line 1, column 8: not JSON"},
        {"{\"a\":NaN}", "line 1, column 8: not JSON"},
        {"{\"a\":\"\t\"}", "line 1, column 6: not JSON"},
        {"{\"a\":\"\\ud800\"}", "line 1, column 13: not JSON"},
        {"{\"a\":\"\\u0000\"}", "line 1, column 13: a NUL in a string"},
        {"{\"\\u0000\":1}", "line 1, column 9: a NUL in a string"},
        {"{\"a\":\"\xc0\xaf\"}", "line 1, column 6: text that is not UTF-8"},
        {"{\"a\":1e999}", "line 1, column 10: a number is too large"},
        {"{\"a\":99999999999999999999}", "line 1, column 25: a number is too large"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        size_t len = strlen(cases[i].text);
        char *text = mk_test_guarded(cases[i].text, len), storage[128];
        struct mk_buf message;
        mk_buf_init_fixed(&message, storage, sizeof(storage));
        json_t *root = strict_json_read_object(mk_str(text, len), &message);
        const char *expected = cases[i].message ? cases[i].message : "";
        if (!root != !!cases[i].message || strcmp(mk_buf_cstr(&message), expected) != 0)
            fail_msg("%s: %s", cases[i].text, mk_buf_cstr(&message));
        json_t *again = strict_json_read_object(mk_str(text, len), NULL); /* without a message */
        assert_int_equal(!again, !root);
        json_decref(again);
        json_decref(root);
        mk_test_unguard(text, len);
    }
}

TEST(depth)
{
    char text[100000], storage[128];
    struct mk_buf message;
    for (unsigned depth = 1; depth < 40000; depth += depth < 20 ? 1 : 20000) {
        size_t len = (size_t)snprintf(text, sizeof(text), "{\"]}[[[[[[[[[[[[[[[[[[[[[[[[[\\\"[\":\n");
        memset(text + len, '[', depth - 1);
        memset(text + len + depth - 1, ']', depth - 1);
        len += 2 * (size_t)(depth - 1);
        text[len - (depth == 1)] = depth == 1 ? '1' : '}';
        json_t *root;
        mk_buf_init_fixed(&message, storage, sizeof(storage));
        if (depth == 1)
            root = strict_json_read_object(MK_STR("{}"), &message);
        else
            root = strict_json_read_object(mk_str(text, len + 1), &message);
        assert_int_equal(!!root, depth <= STRICT_JSON_DEPTH_MAX);
        if (!root)
            assert_string_equal(mk_buf_cstr(&message), "line 2, column 16: nested more than 16 times");
        json_decref(root);
    }
}

TEST(strings)
{
    json_t *root = strict_json_read_object(MK_STR("{\"a\":\"x\",\"b\":\"\",\"c\":1}"), NULL);
    assert_str_equal(strict_json_string(root, "a"), "x");
    assert_non_null(strict_json_string(root, "b").p);
    assert_null(strict_json_string(root, "c").p);
    assert_null(strict_json_string(root, "d").p);
    json_decref(root);
}
