// SPDX-License-Identifier: Apache-2.0
/* Text of clients, cut and escaped; numbers with units; bars. */
#include "testing.h"

#include "bin/shell/shell.h"

static const struct text_style unicode = {.terminal = true, .unicode = true, .columns = 20}, ascii = {.columns = 20};
static char storage[64 * 1024];
static struct mk_buf out;

static int open_out(void **state)
{
    (void)state;
    mk_buf_init_fixed(&out, storage, sizeof(storage));
    return 0;
}

static int close_out(void **state)
{
    (void)state;
    assert_int_equal(out.err, 0);
    mk_buf_release(&out);
    return 0;
}

TEST(escapes, open_out, close_out)
{
    static const struct {
        const char *text, *shown;
    } cases[] = {
        {"plain", "plain"},
        {"a\x1b[31m\n\x7f", "a\\x1b[31m\\x0a\\x7f"},
        {"\xc2\x9b\xc3\xa9", "\\x9b\xc3\xa9"},                  /* CSI in one character; e with an accent */
        {"\x9b\xc3", "\\x9b\\xc3"},                             /* not UTF-8 */
        {"\xc0\x9b\xe0\x80\x9b", "\\xc0\\x9b\\xe0\\x80\\x9b"},  /* escape sequences in too many bytes */
        {"\xed\xa0\x80", "\\xed\\xa0\\x80"},                    /* half of a pair */
        {"a\xe2\x80\xaez\xe2\x80\x8b", "a\\u{202e}z\\u{200b}"}, /* right to left; no width */
        {"\xe4\xb8\xad\xf0\x9f\x90\x92", "\xe4\xb8\xad\xf0\x9f\x90\x92"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        out.len = 0;
        text_add_safe(&out, cases[i].text);
        assert_str_equal(mk_buf_str(&out), cases[i].shown);
    }
}

TEST(lines_of_json, open_out, close_out)
{
    static const struct {
        const char *line, *shown;
    } cases[] = {
        {"{\"a\":\"\\u001b\\\" \xc3\xa9\"}", "{\"a\":\"\\u001b\\\" \xc3\xa9\"}"},
        {"{\"a\":\"\x1b[31m\x7f\xc2\x9b\"}", "{\"a\":\"\\u001b[31m\\u007f\\u009b\"}"},
        {"\x9b\xc3", "\\ufffd\\ufffd"},
        {"\xe2\x80\xae\xf3\xa0\x80\x81", "\\u202e\\udb40\\udc01"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        out.len = 0;
        text_add_json(&out, cases[i].line);
        assert_str_equal(mk_buf_str(&out), cases[i].shown);
    }
}

TEST(cuts, open_out, close_out)
{
    static const struct {
        const char *text;
        size_t width, used;
        const char *shown;
    } cases[] = {
        {"abc", 3, 3, "abc"},
        {"abcd", 3, 3, "ab…"},
        {"abcd", 1, 1, "…"},
        {"abcd", 0, 0, ""},
        {"é\xcc\x81é", 2, 2, "é\xcc\x81é"}, /* a combining accent has no width */
        {"中文字", 6, 6, "中文字"},
        {"中文字", 5, 5, "中文…"},
        {"中文字", 4, 3, "中…"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        out.len = 0;
        assert_int_equal(text_add_truncated(&out, cases[i].text, cases[i].width, &unicode), cases[i].used);
        assert_str_equal(mk_buf_str(&out), cases[i].shown);
    }
    out.len = 0;
    text_add_truncated(&out, "abcd", 3, &ascii);
    assert_str_equal(mk_buf_str(&out), "ab~");
}

TEST(numbers)
{
    static const struct {
        double n;
        const char *bytes, *rate;
    } cases[] = {
        {0, "0 B/s", "0/s"},
        {0.5, "0 B/s", "0.5/s"},
        {99.94, "100 B/s", "99.9/s"},
        {1023, "1023 B/s", "1,023/s"},
        {1023.9, "1.0 KB/s", "1,024/s"},
        {436088.6, "426 KB/s", "436,089/s"},
        {1.25 * 1024 * 1024, "1.2 MB/s", "1,310,720/s"},
        {-1, "-1 B/s", "-1/s"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_string_equal(cell_bytes(cases[i].n, "/s").text, cases[i].bytes);
        assert_string_equal(cell_rate(cases[i].n, "/s").text, cases[i].rate);
    }
    assert_string_equal(cell_us(0).text, "-");
    assert_string_equal(cell_us(212).text, "0.21 ms");
    assert_string_equal(cell_us(12345).text, "12.3 ms");
    assert_string_equal(cell_us(999400).text, "999 ms");
    assert_string_equal(cell_us(999600).text, "1.0 s");
    assert_string_equal(cell_seconds(59).text, "59 s");
    assert_string_equal(cell_seconds(200).text, "3 min 20 s");
    assert_string_equal(cell_seconds(200000).text, "2 d 7 h");
}

TEST(drawings, open_out, close_out)
{
    text_add_bar(&out, 0.5, 5, true);
    text_add_bar(&out, 2, 2, true);
    assert_str_equal(mk_buf_str(&out), "██▌  ██");
    out.len = 0;
    text_add_bar(&out, 0.5, 5, false);
    assert_str_equal(mk_buf_str(&out), "|||  ");
    out.len = 0;
    text_add_history(&out, (const double[]){0, 1, 50, 100}, 4, true);
    assert_str_equal(mk_buf_str(&out), " ▁▅█");
    out.len = 0;
    text_add_history(&out, (const double[]){0, 0}, 2, false);
    assert_str_equal(mk_buf_str(&out), "  ");
}

TEST(lines, open_out, close_out)
{
    struct line line = line_begin(&out, &unicode);
    line_field(&line, BOLD, "12", 5, true);
    line_field(&line, PLAIN, "abcdefgh", 6, false);
    line_add(&line, PLAIN, "a long text behind it");
    line_add(&line, PLAIN, "no room");
    line_end(&line, false);
    assert_str_equal(mk_buf_str(&out), "   12abcde…a long t…\n");
}
