// SPDX-License-Identifier: Apache-2.0
/*
 * Lines of a screen (line.h).
 */
#include "line.h"

#include <stdio.h>

enum { TEXT_BYTES_MAX = 4096 };

struct line line_begin(struct mk_buf *out, const struct text_style *style)
{
    return (struct line){.out = out, .style = style, .left = style->columns};
}

void line_skip(struct line *l, size_t n)
{
    for (; n && l->left; n--, l->left--)
        mk_buf_addc(l->out, ' ');
}

void line_end(struct line *l, bool fill)
{
    if (fill)
        line_skip(l, l->left);
    text_add_colour(l->out, l->style, PLAIN);
    mk_buf_addc(l->out, '\n');
}

/* Appends a text, escaped and cut. Returns the columns that were used. */
static size_t add_text(struct mk_buf *out, const char *text, size_t width, const struct text_style *style)
{
    MK_BUF_ON_STACK(safe, TEXT_BYTES_MAX);
    text_add_safe(&safe, text);
    return text_add_truncated(out, safe.err ? "..." : mk_buf_cstr(&safe), width, style);
}

enum padding { PAD_NONE, PAD_LEFT, PAD_RIGHT };

static void add_field(struct line *l, enum text_colour colour, const char *text, size_t width, enum padding padding)
{
    MK_BUF_ON_STACK(cell, TEXT_BYTES_MAX);
    width = width < l->left ? width : l->left;
    size_t used = add_text(&cell, text, width, l->style);
    if (colour != PLAIN)
        text_add_colour(l->out, l->style, colour);
    if (padding == PAD_LEFT)
        line_skip(l, width - used);
    mk_buf_adds(l->out, mk_buf_str(&cell));
    l->left -= used;
    if (padding == PAD_RIGHT)
        line_skip(l, width - used);
    if (colour != PLAIN && colour != HEADING)
        text_add_colour(l->out, l->style, PLAIN);
}

void line_add(struct line *l, enum text_colour colour, const char *text)
{
    add_field(l, colour, text, l->left, PAD_NONE);
}

void line_addf(struct line *l, enum text_colour colour, const char *format, ...)
{
    char text[TEXT_BYTES_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    line_add(l, colour, text);
}

void line_field(struct line *l, enum text_colour colour, const char *text, size_t width, bool right)
{
    add_field(l, colour, text, width, right ? PAD_LEFT : PAD_RIGHT);
}
