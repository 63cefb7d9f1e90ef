// SPDX-License-Identifier: Apache-2.0
/*
 * Text and numbers for people. What comes from a server, and so perhaps from one of its clients, is escaped: control
 * characters, and characters that are invisible or change the direction of a line, are shown as \xNN or \u{NNNN}.
 */
#ifndef SHELL_TEXT_H
#define SHELL_TEXT_H

#include <monkey/buf.h>

#include <stdbool.h>
#include <stdint.h>

/* How text is shown. All zeros: for a file or a pipe. */
struct text_style {
    bool terminal; /* units with blanks, tables that fit */
    bool colours, unicode;
    size_t columns; /* of the terminal; 0: unknown */
};

enum text_colour { PLAIN, BOLD, DIM, RED, GREEN, YELLOW, BLUE, CYAN, HEADING };

/* Appends the escape sequence of a colour; nothing without colours. */
void text_add_colour(struct mk_buf *out, const struct text_style *style, enum text_colour colour);
/* Appends a text, escaped. */
void text_add_safe(struct mk_buf *out, const char *text);
/* Appends a line of JSON; in its strings the same characters become \uNNNN, and malformed bytes \ufffd. */
void text_add_json(struct mk_buf *out, const char *line);
/* Returns the columns that an escaped text takes on a terminal. */
size_t text_width(const char *text);
/* Appends an escaped text, cut to `width` columns, the last of which shows that. Returns the columns that were used. */
size_t text_add_truncated(struct mk_buf *out, const char *text, size_t width, const struct text_style *style);

/* Appends 1.5 KB, of 1,024 bytes. */
void text_add_bytes(struct mk_buf *out, double n);
/* Appends 3.2 below 100, else 436,089. */
void text_add_rate(struct mk_buf *out, double n);
/* Appends 0.21 ms, 12.5 ms or 3.0 s. */
void text_add_us(struct mk_buf *out, uint64_t us);
/* Appends 3 min 20 s with two units, 3 min with one. */
void text_add_seconds(struct mk_buf *out, long long n, unsigned n_units);
/* Appends the local time as 15:04:05.123. */
void text_add_clock(struct mk_buf *out, uint64_t unix_us);
/* Appends a bar of `width` columns, of which `share` (0 to 1) is filled. */
void text_add_bar(struct mk_buf *out, double share, size_t width, bool unicode);
/* Appends a column for each value, as high as its share of the greatest. */
void text_add_history(struct mk_buf *out, const double *values, size_t n, bool unicode);

#endif
