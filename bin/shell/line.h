// SPDX-License-Identifier: Apache-2.0
/*
 * A line of a screen: what is added is escaped (text.h), and cut at the end of the line.
 */
#ifndef SHELL_LINE_H
#define SHELL_LINE_H

#include "text.h"

struct line {
    struct mk_buf *out;
    const struct text_style *style;
    size_t left; /* columns */
};

/* Begins a line of style->columns. */
struct line line_begin(struct mk_buf *out, const struct text_style *style);
/* Ends it. `fill`: with blanks to its end, in the colour of the moment. */
void line_end(struct line *l, bool fill);
/* Add text; with printf(). */
void line_add(struct line *l, enum text_colour colour, const char *text);
void line_addf(struct line *l, enum text_colour colour, const char *format, ...) MK_PRINTF(3, 4);
/* Adds a field of `width` columns, `right` aligned or not. */
void line_field(struct line *l, enum text_colour colour, const char *text, size_t width, bool right);
/* Adds blanks. */
void line_skip(struct line *l, size_t n);

#endif
