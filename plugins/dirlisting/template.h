// SPDX-License-Identifier: Apache-2.0
/*
 * Templates: HTML texts with fields, parsed once into pieces that are written for each page or entry.
 *
 *     <a href="%_target_url_%">%_target_name_%</a>      values, escaped for the place where they stand
 *     %_if_readme_% ... %_end_%   %_if_not_readme_% ... %_end_%      only if the field has a value, or has none
 *
 * A value is escaped for HTML in text and in quoted attributes; in attributes that hold a URL it is percent-encoded,
 * unless it is a URL itself. Elsewhere (scripts, styles, event handlers, comments, tag names, values without quotes) a
 * field is an error, because there are no rules by which any bytes could stand there. So the content of scripts and
 * styles is the same in all pages, and their digests can be in the Content-Security-Policy.
 */
#ifndef DIRLISTING_TEMPLATE_H
#define DIRLISTING_TEMPLATE_H

#include <monkey/arena.h>
#include <monkey/buf.h>

#include "markup.h"

enum {
    TEMPLATE_BYTES_MAX = 256 * 1024,
    TEMPLATE_PIECES_MAX = 4096,
    TEMPLATE_DEPTH_MAX = 8,
    TEMPLATE_CODES_MAX = 16,
    TEMPLATE_ERROR_BYTES = 256,
};

enum template_kind {
    TEMPLATE_TEXT,  /* a line of text; control characters become visible */
    TEMPLATE_LINES, /* text with line breaks */
    TEMPLATE_URL,   /* a URI reference, percent-encoded already */
    TEMPLATE_HTML,  /* HTML that `block` makes; in text only */
};

/* A field that a template may have. The functions get the `ctx` of template_write(). */
struct template_field {
    const char *name;
    uint8_t kind;
    bool of_entry; /* only in templates of entries */
    /* Returns the value, valid until the next call; for HTML whether there is one: empty is no. */
    struct mk_str (*text)(void *ctx);
    struct mk_str (*text_of)(void *ctx, int arg); /* in its place, with the argument of the row */
    int arg;
    void (*block)(struct mk_buf *out, void *ctx); /* of HTML */
};

struct template_piece {
    uint8_t op, place;                  /* internal; enum markup_place */
    uint32_t next;                      /* of a condition: the piece after its end */
    const struct template_field *field; /* NULL: `text` */
    struct mk_str text;
};

struct template
{
    struct template_piece *pieces;
    uint32_t n;
};

/* The content of the <script> and <style> elements of several templates. */
struct template_codes {
    struct template_code {
        struct mk_str text;
        bool is_script;
    } items[TEMPLATE_CODES_MAX];
    uint32_t n;
};

struct template_error {
    unsigned line, column; /* from 1; columns are bytes */
    char text[TEMPLATE_ERROR_BYTES];
};

/* What templates are parsed with. */
struct template_parser {
    const struct template_field *fields; /* end with a row without a name */
    struct mk_arena *arena;              /* of the pieces */
    struct template_codes *codes;        /* gets those of all templates */
    struct markup markup;                /* after the last template; zeroed before the first */
};

/*
 * Parses a template, which ends between tags. Pieces and codes point into `text`.
 * Returns 0, -EINVAL (see `ret_error`) or -ENOMEM.
 */
int template_parse(struct template_parser *parser, struct mk_str text, bool of_entry, struct template *ret,
                   struct template_error *ret_error);

/* Writes a template, whose fields get `ctx`. */
void template_write(const struct template *t, struct mk_buf *out, void *ctx);

#endif
