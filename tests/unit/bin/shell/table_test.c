// SPDX-License-Identifier: Apache-2.0
/* The objects that the shell reads, and the tables that it makes of them. */
#include "testing.h"

#include "bin/shell/shell.h"

#include <stdio.h>
#include <stdlib.h>

static char storage[64 * 1024];

static bool read_copy(const char *text, struct object *o)
{
    char *copy = mk_test_guarded(text, strlen(text));
    bool good = object_read(copy, strlen(text), o);
    mk_test_unguard(copy, strlen(text));
    return good;
}

/* ── objects ── */

TEST(object)
{
    struct object o;
    assert_true(read_copy("{\"a\":\"x\\\"y\\n\\u0041\\u00e9\\u20ac\", \"n\":-12, \"t\":true,\"f\" : false}", &o));
    assert_int_equal(o.n, 4);
    assert_string_equal(object_get(&o, "a"), "x\"y\nA\xc3\xa9\xe2\x82\xac");
    assert_string_equal(object_get(&o, "n"), "-12");
    assert_int_equal(o.items[1].kind, OBJECT_NUMBER);
    assert_string_equal(object_get(&o, "t"), "true");
    assert_int_equal(o.items[2].kind, OBJECT_BOOL);
    assert_string_equal(object_get(&o, "f"), "false");
    assert_null(object_get(&o, "b"));
    object_release(&o);
    assert_true(read_copy("{\"r\":-0.25, \"max\":9223372036854775807, \"nul\":\"a\\u0000b\"}", &o));
    assert_string_equal(object_get(&o, "r"), "-0.25");
    assert_string_equal(object_get(&o, "max"), "9223372036854775807");
    assert_string_equal(object_get(&o, "nul"), "a");
    object_release(&o);
    assert_true(read_copy("{}", &o));
    assert_int_equal(o.n, 0);
    object_release(&o);
}

TEST(malformed_objects)
{
    static const char *const texts[] = {
        "",
        "[]",
        "{",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":\"x}",
        "{\"a\":1,}",
        "{\"a\":1",
        "{a:1}",
        "{\"a\":nul}",
        "{\"a\":\"\\x\"}",
        "{\"a\":\"\\u12\"}",
        "{\"a\":\"\\",
        "{\"a\":1 1}",
        "{\"a\":{}}",
        "{\"a\":[]}",
        "{\"a\":null}",
        "{\"a\":1, \"b\":{}}",
        "{\"\x1b\":1}",
        "{\"\":1}",
        "{\"a\":\"b\" \"c\"}",
    };
    struct object o;
    for (size_t i = 0; i < COUNT(texts); i++)
        if (read_copy(texts[i], &o))
            fail_msg("%s was read", texts[i]);
}

TEST(many_members)
{
    struct object o;
    char text[4096] = "{";
    for (unsigned i = 0; i < OBJECT_MEMBERS_MAX + 5; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s\"k%u\":%u", i ? "," : "", i, i);
    snprintf(text + strlen(text), sizeof(text) - strlen(text), "}");
    assert_true(read_copy(text, &o));
    assert_int_equal(o.n, OBJECT_MEMBERS_MAX);
    assert_string_equal(object_get(&o, "k39"), "39");
    object_release(&o);
}

/* ── tables ── */

static const struct text_style plain, coloured = {.terminal = true, .colours = true};
static struct table table;
static struct mk_buf out;

static int open_table(void **state)
{
    (void)state;
    table_init(&table, &plain);
    mk_buf_init_fixed(&out, storage, sizeof(storage));
    return 0;
}

static int close_table(void **state)
{
    (void)state;
    table_release(&table);
    return 0;
}

static void add_row(const char *text)
{
    struct object o;
    assert_true(read_copy(text, &o));
    assert_true(table_add(&table, &o));
    object_release(&o);
}

TEST(table, open_table, close_table)
{
    add_row("{\"id\":7,\"peer\":\"192.0.2.1\",\"age_s\":200,\"sent_bytes\":1536,\"note\":\"\",\"_hidden\":\"x\"}");
    add_row("{\"id\":12,\"peer\":\"::1\",\"age_s\":5,\"sent_bytes\":10,\"note\":\"\",\"path\":\"/a\"}");
    table_print(&table, &out);
    assert_str_equal(mk_buf_str(&out), "ID  PEER         AGE  SENT  PATH\n"
                                       " 7  192.0.2.1  3m20s  1.5K  \n"
                                       "12  ::1           5s   10B  /a\n");
    out.len = 0;
    add_row("{\"id\":100000,\"peer\":\"x\",\"other\":1}"); /* the widths stay, and the columns */
    table_print(&table, &out);
    assert_str_equal(mk_buf_str(&out), "100000  x                       \n");
}

TEST(sort, open_table, close_table)
{
    add_row("{\"id\":1,\"age_s\":5,\"name\":\"b\"}");
    add_row("{\"id\":2,\"age_s\":50,\"name\":\"c\"}");
    add_row("{\"id\":3,\"age_s\":7,\"name\":\"a\"}");
    assert_false(table_sort(&table, "colour"));
    assert_true(table_sort(&table, "age")); /* numbers from the greatest */
    assert_string_equal(table.first->cells[0], "2");
    assert_true(table_sort(&table, "name"));
    assert_string_equal(table.first->cells[0], "3");
    assert_true(table_sort(&table, "age_s"));
    add_row("{\"id\":4}");
    table_print(&table, &out);
    assert_non_null(strstr(mk_buf_cstr(&out), "\n 4"));
}

TEST(values, open_table, close_table)
{
    static const struct {
        const char *key, *value, *text, *on_terminal;
    } cases[] = {
        {"n_bytes", "0", "0B", "0 B"},
        {"n_bytes", "1023", "1023B", "1023 B"},
        {"n_bytes", "10240", "10K", "10.0 KB"},
        {"n_bytes", "1048576", "1.0M", "1.0 MB"},
        {"n_bytes", "5497558138880", "5.0T", "5.0 TB"},
        {"n_s", "59", "59s", "59 s"},
        {"n_s", "3661", "1h01m", "1 h 1 min"},
        {"n_s", "90000", "1d01h", "1 d 1 h"},
        {"n_ms", "12", "12ms", "12 ms"},
        {"n_unix_us", "1700000000123456", "22:13:20.123", "22:13:20.123"},
        {"n", "12345", "12345", "12345"},
        {"_s", "5", "5", "5"},
    };
    assert_int_equal(setenv("TZ", "UTC", 1), 0);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct object_member m = {.key = cases[i].key, .value = cases[i].value, .kind = OBJECT_NUMBER};
        out.len = 0;
        value_add(&out, &m, &plain, 2);
        assert_str_equal(mk_buf_str(&out), cases[i].text);
        out.len = 0;
        value_add(&out, &m, &coloured, 2);
        assert_str_equal(mk_buf_str(&out), cases[i].on_terminal);
    }
}

TEST(values_for_programs, open_table, close_table)
{
    add_row("{\"_buckets\":\"1:2\",\"time_us\":5,\"id\":1}");
    table_print(&table, &out);
    assert_str_equal(mk_buf_str(&out), "ID\n 1\n");
}

/* The columns of a stream are known before its rows are. */
TEST(stream, open_table, close_table)
{
    table.stream = true;
    add_row("{\"id\":7,\"before\":\"\",\"after\":\"idle\",\"requests\":1}");
    table_print(&table, &out);
    add_row("{\"id\":7,\"before\":\"idle\",\"after\":\"read_head\",\"requests\":1}");
    table_print(&table, &out);
    assert_str_equal(mk_buf_str(&out), "   ID  BEFORE         AFTER          REQUESTS\n"
                                       "    7                 idle                  1\n"
                                       "    7  idle           read_head             1\n");
}

/* ── tables that fit the terminal ── */

static void print_connection(size_t columns)
{
    struct text_style style = {.terminal = true, .unicode = true, .columns = columns};
    table_release(&table);
    table_init(&table, &style);
    table.fits = true;
    out.len = 0;
    add_row("{\"id\":12,\"worker\":0,\"peer\":\"2001:db8::1\",\"port\":443,\"transport\":\"liana\",\"age_s\":200,"
            "\"sent_bytes\":1536,\"host\":\"downloads.example.org\",\"path\":\"/a/very/long/path/of/a/file\"}");
    table_print(&table, &out);
}

TEST(fit, open_table, close_table)
{
    print_connection(120);
    assert_str_equal(mk_buf_str(&out),
                     "ID  WORKER  PEER         PORT  TRANSPORT    AGE    SENT  HOST                   PATH\n"
                     "12       0  2001:db8::1   443  liana      3 min  1.5 KB  downloads.example.org  "
                     "/a/very/long/path/of/a/file\n");
    print_connection(80);
    assert_str_equal(mk_buf_str(&out),
                     "ID  WORKER  PEER         PORT    AGE    SENT  HOST              PATH\n"
                     "12       0  2001:db8::1   443  3 min  1.5 KB  downloads.examp…  /a/very/long/pa…\n");
    print_connection(50);
    assert_str_equal(mk_buf_str(&out), "ID  PEER           AGE  HOST          PATH\n"
                                       "12  2001:db8::1  3 min  downloads.e…  /a/very/lon…\n");
}

TEST(list, open_table, close_table)
{
    struct object o;
    assert_true(read_copy("{\"version\":\"2.0\",\"uptime_s\":61,\"log_level\":\"info\"}", &o));
    table_print_list(&o, &plain, &out);
    object_release(&o);
    assert_str_equal(mk_buf_str(&out), "version    2.0\nuptime     1m01s\nlog level  info\n");
}

TEST(colours, open_table, close_table)
{
    table_init(&table, &coloured);
    add_row("{\"id\":1,\"state\":\"write\",\"host\":\"write\"}");
    table_print(&table, &out);
    assert_str_equal(mk_buf_str(&out), "\033[1mID  STATE  HOST\033[0m\n 1  \033[32mwrite\033[0m  write\n");
    out.len = 0;
    struct object o;
    assert_true(read_copy("{\"state\":\"draining\"}", &o));
    table_print_list(&o, &coloured, &out);
    object_release(&o);
    assert_str_equal(mk_buf_str(&out), "\033[1mstate\033[0m  \033[33mdraining\033[0m\n");
}
