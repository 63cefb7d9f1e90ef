// SPDX-License-Identifier: Apache-2.0
/* Objects of an answer: each is one line of valid JSON, whatever a client of the server has sent. */
#include "plugins/cheetah/json.h"

#include "testing.h"

static char storage[4096];
static struct mk_buf out;

static int begin(void **state)
{
    (void)state;
    mk_buf_init_fixed(&out, storage, sizeof(storage));
    json_begin(&out);
    return 0;
}

TEST(members, begin)
{
    struct mk_address address;
    assert_int_equal(mk_address_parse(MK_STR("2001:db8::1"), &address), 0);
    json_text(&out, "a", "b");
    json_number(&out, "n", -9007199254740993);
    json_bool(&out, "t", true);
    json_bool(&out, "f", false);
    json_address(&out, "peer", &address);
    json_sentence(&out, "s", "%d of %s", 3, "it");
    json_end(&out);
    assert_str_equal(mk_buf_str(&out), "{\"a\":\"b\",\"n\":-9007199254740993,\"t\":true,\"f\":false,"
                                       "\"peer\":\"2001:db8::1\",\"s\":\"3 of it\"}\n");
}

TEST(strings, begin)
{
    static const struct {
        const char *text, *json;
    } cases[] = {
        {"", "\"\""},
        {"a\"b\\c", "\"a\\\"b\\\\c\""},
        {"\n\x1b[31m\x7f", "\"\\u000a\\u001b[31m\\u007f\""},
        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\""},
        {"\xff\xc3", "\"\xef\xbf\xbd\xef\xbf\xbd\""},                 /* no UTF-8 */
        {"\xc0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\""},                 /* a long form */
        {"\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""}, /* half of a pair */
        {"\xe0\x80\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
        {"\xf4\x90\x80\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char *text = mk_test_guarded(cases[i].text, strlen(cases[i].text));
        mk_buf_init_fixed(&out, storage, sizeof(storage));
        json_begin(&out);
        json_string(&out, "k", mk_str(text, strlen(cases[i].text)));
        mk_test_unguard(text, strlen(cases[i].text));
        struct mk_str got = mk_buf_str(&out);
        assert_str_equal(mk_str(got.p + 5, got.len - 5), cases[i].json);
    }
}

TEST(long_sentence, begin)
{
    char text[3000];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    json_sentence(&out, "s", "%s", text);
    assert_int_equal(out.len, 1 + 4 + 2 + 1023);
}
