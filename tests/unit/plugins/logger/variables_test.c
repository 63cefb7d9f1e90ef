// SPDX-License-Identifier: Apache-2.0
#include "plugins/logger/logger.h"
#include "testing.h"

static struct line l;
static char storage[LINE_BYTES_MAX];

static const char *value(const char *p, size_t len, enum line_form form)
{
    line_begin(&l, storage, 1);
    line_put_value(&l, mk_str(p, len), form);
    line_put_char(&l, '\0');
    return storage;
}

TEST(escapes)
{
    static const struct {
        const char *in, *word, *quoted, *json;
    } rows[] = {
        {"plain/~!'", "plain/~!'", "plain/~!'", "plain/~!'"},
        {"a b", "a\\x20b", "a b", "a b"},
        {"\"\\", "\\x22\\x5c", "\\x22\\x5c", "\\u0022\\u005c"},
        {"\r\n\t\x1b[m", "\\x0d\\x0a\\x09\\x1b[m", "\\x0d\\x0a\\x09\\x1b[m", "\\u000d\\u000a\\u0009\\u001b[m"},
        {"\x7f\x80\x9b\xff", "\\x7f\\x80\\x9b\\xff", "\\x7f\\x80\\x9b\\xff", "\\u007f\\u0080\\u009b\\u00ff"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        size_t len = strlen(rows[i].in);
        assert_string_equal(value(rows[i].in, len, LINE_WORD), rows[i].word);
        assert_string_equal(value(rows[i].in, len, LINE_QUOTED), rows[i].quoted);
        assert_string_equal(value(rows[i].in, len, LINE_JSON), rows[i].json);
    }
    assert_string_equal(value("\0", 1, LINE_QUOTED), "\\x00");
}

TEST(all_bytes_are_printable)
{
    char all[256];
    for (int i = 0; i < 256; i++)
        all[i] = (char)i;
    for (enum line_form form = LINE_WORD; form <= LINE_JSON; form++)
        for (const char *p = value(all, sizeof(all), form); *p; p++)
            assert_true(*p >= 0x20 && *p < 0x7f && *p != '"' && (form != LINE_WORD || *p != ' '));
}

/* Values are cut between two characters; what the server says still fits. */
TEST(room)
{
    static char long_value[2 * LINE_BYTES_MAX];
    for (int c = 'a'; c != 0; c = c == 'a' ? 0xff : 0)
        for (size_t fixed = 1; fixed <= LINE_FIXED_MAX; fixed += fixed < 8 ? 1 : 511) {
            char *room = mk_test_guarded(storage, LINE_BYTES_MAX);
            memset(long_value, c, sizeof(long_value));
            line_begin(&l, room, fixed);
            line_put_value(&l, mk_str(long_value, sizeof(long_value)), LINE_JSON);
            line_put_value(&l, mk_str(long_value, sizeof(long_value)), LINE_JSON);
            assert_int_equal(line_length(&l) % (c == 'a' ? 1 : 6), 0);
            assert_true(line_length(&l) + fixed > LINE_BYTES_MAX - 6);
            for (size_t i = 0; i < fixed; i++)
                line_put_char(&l, 'x');
            mk_test_unguard(room, LINE_BYTES_MAX);
        }
}

TEST(numbers)
{
    line_begin(&l, storage, 64);
    line_put_number(&l, 0);
    line_put_char(&l, ' ');
    line_put_number(&l, 1234567890);
    line_put_char(&l, ' ');
    line_put_number(&l, UINT64_MAX);
    assert_str_equal(mk_str(storage, line_length(&l)), "0 1234567890 18446744073709551615");
}

TEST(times)
{
    static const struct {
        int64_t second;
        uint32_t ms;
        const char *clf, *iso;
    } rows[] = {
        {784111777, 7, "06/Nov/1994:08:49:37 +0000", "1994-11-06T08:49:37.007Z"},
        {784111777, 999, "06/Nov/1994:08:49:37 +0000", "1994-11-06T08:49:37.999Z"},
        {0, 0, "01/Jan/1970:00:00:00 +0000", "1970-01-01T00:00:00.000Z"},
        {1709164800, 10, "29/Feb/2024:00:00:00 +0000", "2024-02-29T00:00:00.010Z"},
    };
    memset(&l, 0, sizeof(l));
    for (size_t i = 0; i < COUNT(rows); i++) {
        line_set_time(&l, rows[i].second, rows[i].ms);
        line_begin(&l, storage, 64);
        line_put_iso(&l);
        assert_string_equal(l.clf, rows[i].clf);
        assert_str_equal(mk_str(storage, line_length(&l)), rows[i].iso);
    }
}
