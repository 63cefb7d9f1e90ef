// SPDX-License-Identifier: Apache-2.0
#include "shell.h"

#include <stdio.h>
#include <unistd.h>

/* So many rows decide how wide the columns are. Sorted rows are kept, all of them. */
enum { ROWS_AT_ONCE = 500, FLUSH_BYTES = 64 * 1024, OUT_BYTES_MAX = 256 * 1024 * 1024 };

enum view_kind { VIEW_TABLE, VIEW_LIST, VIEW_TEXT, VIEW_STREAM };

struct view {
    const struct view_options *options;
    enum view_kind kind;
    struct table table;
    struct mk_buf out;
    char sort[64];
};

static bool flush_output(struct view *v)
{
    bool good = !v->out.err && (!v->out.len || fwrite(v->out.data, 1, v->out.len, stdout) == v->out.len);
    v->out.len = 0;
    return fflush(stdout) == 0 && good;
}

/* Lists that are long and wide; the sentences of other answers are shown whole. */
static bool must_fit(const char *command, const struct text_style *style)
{
    bool listed = command && (strcmp(command, "connections") == 0 || strcmp(command, "trace") == 0);
    return listed && style->terminal && style->columns;
}

static void begin_view(struct view *v, const char *command, const char *name)
{
    static const char *const names[] = {"table", "list", "text", "stream"};
    for (unsigned i = 0; i < MK_COUNT_OF(names); i++)
        if (name && strcmp(names[i], name) == 0)
            v->kind = (enum view_kind)i;
    v->table.stream = v->kind == VIEW_STREAM;
    v->table.fits = must_fit(command, &v->table.style);
}

static bool show_row(struct view *v, const struct object *o)
{
    const char *text;
    switch (v->kind) {
    case VIEW_LIST:
        table_print_list(o, &v->options->style, &v->out);
        return flush_output(v);
    case VIEW_TEXT:
        text = object_get(o, "text");
        text_add_safe(&v->out, text ? text : "");
        mk_buf_addc(&v->out, '\n');
        return v->out.len < FLUSH_BYTES || flush_output(v);
    default:
        if (!table_add(&v->table, o))
            return false;
        if (v->kind != VIEW_STREAM && (v->sort[0] || v->table.n_rows < ROWS_AT_ONCE))
            return true;
        table_print(&v->table, &v->out);
        return flush_output(v);
    }
}

static bool take_object(struct object *o, const char *line, void *ctx)
{
    struct view *v = ctx;
    const char *warning = object_get(o, "warning");
    if (object_get(o, "begin")) {
        begin_view(v, object_get(o, "begin"), object_get(o, "view"));
        return true;
    }
    if (warning) {
        struct mk_buf text;
        mk_buf_init(&text, 8192);
        text_add_safe(&text, warning);
        fprintf(stderr, "monkey shell: %s\n", mk_buf_cstr(&text));
        mk_buf_release(&text);
        return true;
    }
    if (!v->options->json)
        return show_row(v, o);
    text_add_json(&v->out, line);
    mk_buf_addc(&v->out, '\n');
    return (v->kind != VIEW_STREAM && v->out.len < FLUSH_BYTES) || flush_output(v);
}

static void finish_view(struct view *v)
{
    if (v->sort[0] && !v->options->json && v->table.first && !table_sort(&v->table, v->sort))
        fprintf(stderr, "monkey shell: the answer has no column %s\n", v->sort);
    table_print(&v->table, &v->out);
    flush_output(v);
    table_release(&v->table);
    mk_buf_release(&v->out);
}

static void report_result(int result, const char *error, bool colours)
{
    struct mk_buf text;
    if (result > 0)
        return;
    mk_buf_init(&text, 64 * 1024);
    if (result < 0)
        mk_buf_addf(&text, "the connection to the server is lost");
    else
        text_add_safe(&text, error);
    fprintf(stderr, "%s%s%s\n", colours ? "\033[31m" : "", mk_buf_cstr(&text), colours ? "\033[0m" : "");
    mk_buf_release(&text);
}

/* Copies the value of `sort=KEY` among the words of a line to `to`; an empty one if there is none. */
static void find_sort(struct mk_str line, char *to, size_t size)
{
    static const char key[] = "sort=";
    const char *at = line.len ? memmem(line.p, line.len, key, sizeof(key) - 1) : NULL;
    size_t n = 0;
    to[0] = '\0';
    if (!at)
        return;
    for (at += sizeof(key) - 1; at < line.p + line.len && n + 1 < size && !strchr(" \t\",]'", *at); at++)
        to[n++] = *at;
    to[n] = '\0';
}

int view_ask(struct link *l, struct mk_str line, const struct view_options *options)
{
    struct view v = {.options = options};
    struct mk_buf error;
    mk_buf_init(&error, 64 * 1024);
    mk_buf_init(&v.out, OUT_BYTES_MAX);
    table_init(&v.table, &options->style);
    screen_measure(&v.table.style.columns, NULL);
    find_sort(line, v.sort, sizeof(v.sort));
    int result = link_ask(l, line, options->interactive ? STDIN_FILENO : -1, take_object, &v, &error);
    finish_view(&v);
    report_result(result, mk_buf_cstr(&error), options->style.colours && isatty(STDERR_FILENO));
    mk_buf_release(&error);
    return result;
}
