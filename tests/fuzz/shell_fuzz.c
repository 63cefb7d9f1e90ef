// SPDX-License-Identifier: Apache-2.0
/*
 * The protocol of the shell, from both sides. A line is split as the server does it: words lie in the line, one behind
 * the other. They are then written as a member of an object, which the shell must read as the same text; and the line
 * is read as an object itself, and shown in a table without any control character.
 */
#include "../../bin/shell/shell.h"
#include "../../plugins/cheetah/cheetah.h"

#include <monkey/kit/json.h>

#include <stdint.h>
#include <stdlib.h>

#define CHECK(fact) \
    do { \
        if (!(fact)) \
            abort(); \
    } while (0)

static char *copy_line(const uint8_t *data, size_t size)
{
    char *line = malloc(size + 1); /* so that reads behind the end are found */
    CHECK(line);
    memcpy(line, data, size);
    return line;
}

/* A word as JSON is one line, and an object with one member. */
static void check_word(struct mk_str word)
{
    struct mk_buf out;
    struct object o;
    mk_buf_init(&out, 8 * word.len + 64);
    mk_json_open(&out, NULL, '{');
    mk_json_str(&out, "word", word);
    mk_json_close_line(&out);
    CHECK(!out.err && out.data[out.len - 1] == '\n' && !memchr(out.data, '\n', out.len - 1));
    bool has_nul = word.len && memchr(word.p, '\0', word.len);
    CHECK(object_read(out.data, out.len - 1, &o) && o.n == 1);
    CHECK(has_nul || strlen(o.items[0].value) >= word.len);
    object_release(&o);
    mk_buf_release(&out);
}

static void split_line(char *line, size_t size)
{
    struct words words;
    const char *error = words_split(line, size, &words), *at = line;
    if (error)
        return;
    CHECK(words.n <= WORDS_MAX);
    for (unsigned i = 0; i < words.n; i++) {
        CHECK(words.items[i].p >= at && words.items[i].p + words.items[i].len <= line + size);
        at = words.items[i].p + words.items[i].len;
        check_word(words.items[i]);
    }
}

static void show_object(char *line, size_t size, const struct text_style *style)
{
    struct object o;
    struct table table;
    struct mk_buf out;
    if (!object_read(line, size, &o))
        return;
    table_init(&table, style);
    table.fits = style->terminal;
    mk_buf_init(&out, 1 << 24);
    CHECK(table_add(&table, &o) && table_add(&table, &o));
    table_print(&table, &out);
    table_print_list(&o, style, &out);
    for (size_t i = 0; i < out.len; i++)
        CHECK((unsigned char)out.data[i] >= 0x20 || out.data[i] == '\n');
    table_release(&table);
    object_release(&o);
    mk_buf_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct text_style styles[] = {{0}, {.terminal = true, .unicode = true, .columns = 40}};
    if (size > WORDS_LINE_BYTES)
        return 0;
    char *line = copy_line(data, size);
    split_line(line, size);
    for (unsigned i = 0; i < 2; i++) {
        memcpy(line, data, size);
        line[size] = '\n';
        show_object(line, size, &styles[i]);
    }
    free(line);
    return 0;
}
