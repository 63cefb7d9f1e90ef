// SPDX-License-Identifier: Apache-2.0
/*
 * Templates of listings: a template that was read writes any value so that the markup around it stays the same: at the
 * end of the written text the place is that at the end of the template, with values and with none. The first byte
 * chooses the kind of template; the value is what follows the last NUL.
 */
#include "../../plugins/dirlisting/template.h"

#include <stdlib.h>

static struct mk_str value;

static struct mk_str get_value(void *ctx)
{
    (void)ctx;
    return value;
}

static void write_block(struct mk_buf *out, void *ctx)
{
    (void)ctx;
    mk_buf_adds(out, MK_STR("<i title=\"x\">y</i>"));
}

static const struct template_field fields[] = {
    {"text", TEMPLATE_TEXT, .text = get_value},
    {"lines", TEMPLATE_LINES, .text = get_value},
    {"block", TEMPLATE_HTML, .text = get_value, .block = write_block},
    {"target_name", TEMPLATE_TEXT, true, .text = get_value},
    {0},
};

static void check_text(const struct template *t)
{
    struct markup markup = {0};
    struct mk_buf out;
    mk_buf_init(&out, 1 << 20);
    template_write(t, &out, NULL);
    for (size_t i = 0; i < out.len; i++)
        markup_feed(&markup, out.data[i]);
    if (!out.err && !markup_is_same(&markup, &(struct markup){0}))
        abort();
    mk_buf_release(&out);
}

static void check_error(const struct template_error *error, struct mk_str text)
{
    if (!error->line || !error->column || error->line > text.len + 1 || error->column > text.len + 1 ||
        !memchr(error->text, '\0', sizeof(error->text)))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mk_arena arena;
    struct template_codes codes = {.n = 0};
    struct template_parser parser = {fields, &arena, &codes, {0}};
    struct template_error error;
    struct template t;
    if (!size)
        return 0;
    struct mk_str text = mk_str((const char *)data + 1, size - 1);
    const char *nul = text.len ? memrchr(text.p, '\0', text.len) : NULL;
    value = nul ? mk_str(nul + 1, (size_t)(text.p + text.len - nul) - 1) : MK_STR("<'\">");
    text.len = nul ? (size_t)(nul - text.p) : text.len;
    mk_arena_init(&arena, NULL, 8 << 20, NULL, 0);
    int err = template_parse(&parser, text, data[0] & 1, &t, &error);
    if (err == 0) {
        check_text(&t);
        value = MK_STR_NONE;
        check_text(&t);
    } else {
        check_error(&error, text);
    }
    mk_arena_release(&arena);
    return 0;
}
