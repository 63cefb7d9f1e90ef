// SPDX-License-Identifier: Apache-2.0
#ifndef DIRLISTING_TEMPLATE_H
#define DIRLISTING_TEMPLATE_H

#include <monkey/base/arena.h>
#include <monkey/base/buf.h>
#include <monkey/base/str.h>

/*
 * Follows an HTML text byte by byte and tells what stands at the current place, so that a value that is inserted there
 * can be escaped for it. It knows the states of the HTML standard's tokenizer that matter for this (section 13.2.5),
 * without foreign content: <title> and <style> are read as in HTML within <svg>, too.
 */
enum markup_place {
    MARKUP_TEXT,      /* between tags, or in <title> or <textarea> */
    MARKUP_ATTRIBUTE, /* in a quoted value */
    MARKUP_URL,       /* in the quoted value of href, src ... */
    MARKUP_CODE,      /* in the value of onclick, style, srcdoc ... */
    MARKUP_UNQUOTED,  /* in a value without quotes */
    MARKUP_TAG,       /* in a tag, outside a value */
    MARKUP_RAW,       /* in <script>, <style> or another element without character references */
    MARKUP_COMMENT,   /* in a comment or declaration */
};

enum { MARKUP_NAME_BYTES = 16 };

/* Begins zeroed: in text. */
struct markup {
    uint8_t state, kind; /* internal: enum markup_state, and what the tag or attribute means */
    uint8_t tag_len, attribute_len, matched;
    int8_t dashes;
    char quote;
    bool closing;
    char tag[MARKUP_NAME_BYTES], attribute[MARKUP_NAME_BYTES]; /* lower case; longer names are cut */
    /* of the elements so far: */
    bool has_script_file, has_style_file; /* <script src>, <link rel=stylesheet> */
    bool has_comment_in_script;           /* "<!--", which changes how a script ends */
};

/* Reads the next byte. */
void markup_feed(struct markup *m, char c);
/* Returns what stands at the current place. */
enum markup_place markup_place(const struct markup *m);
/* Returns true in the content of <script> or <style>; `ret_script` tells which. */
bool markup_is_inline_code(const struct markup *m, bool *ret_script);
/* Returns true if both are at the same kind of place, so that the text between them could be left out. */
bool markup_is_same(const struct markup *a, const struct markup *b);

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

/*
 * The Content-Security-Policy of a theme: what its pages may load and run.
 */
/*
 * Appends the policy: the scripts and styles in the templates (by their SHA-256 digests), pictures and fonts of this
 * host; scripts and style sheets in files of this host only if the templates refer to such files. Nothing else.
 */
void policy_write(struct mk_buf *out, const struct template_codes *codes, const struct markup *markup);

/*
 * Themes: folders with the templates header.theme, entry.theme and footer.theme.
 */
struct theme {
    struct theme *next;
    struct mk_str name; /* as configured: of an installed theme, or an absolute path */
    struct template header, entry, footer;
    struct mk_str policy; /* Content-Security-Policy */
};

/*
 * Reads a theme. The files may be symbolic links within the folder, and must be regular files of TEMPLATE_BYTES_MAX at
 * most. Memory comes from `arena`. May block.
 * Returns 0, -EINVAL (a sentence is in `error`) or -ENOMEM.
 */
int theme_load(struct theme *ret, struct mk_str name, const struct template_field *fields, struct mk_arena *arena,
               struct mk_buf *error);

/*
 * Text of pages: escaping of bytes that need not be UTF-8, sizes and dates. Functions with a buffer append to it; its
 * sticky error reports a failure.
 */
/*
 * Appends text for HTML, as text and as a quoted value. The result is valid UTF-8: a byte that is not part of a
 * character becomes U+FFFD, and so do control characters and those that change the direction of text, which could make
 * a name look like another one. Line breaks and tabs become pictures (U+240A), or stay if `lines`.
 */
void text_html(struct mk_buf *out, struct mk_str text, bool lines);

/* Appends bytes for one part of a URI: percent-encodes all but unreserved characters (RFC 3986 section 2.3). */
void text_uri(struct mk_buf *out, struct mk_str bytes);

/*
 * Return a text in `storage`, which has room for TEXT_BYTES: "1.2 KB", "12,345 bytes", "2026-11-21 13:05" and
 * "2026-11-21T13:05:00Z". Times are UTC; one outside the years 0 to 9999 is empty.
 */
enum { TEXT_BYTES = 48 };
struct mk_str text_size(char *storage, uint64_t bytes);
struct mk_str text_exact_size(char *storage, uint64_t bytes);
struct mk_str text_time(char *storage, int64_t seconds);
struct mk_str text_iso_time(char *storage, int64_t seconds);

/* Returns a number with a comma between each three digits, in `storage`. */
struct mk_str text_number(char *storage, uint64_t n);

/*
 * The kind of a file by the extension of its name, for icons and titles.
 */
/* Returns "image", "video", "audio", "document", "text", "code", "archive", "font", "program" or "file"; a literal. */
struct mk_str kind_of(struct mk_str name);

/*
 * Content-Disposition (RFC 6266) for a file that the client saves.
 */
/*
 * Appends the value for a file NAME.SUFFIX. Any bytes in `name`: `filename` gets safe ASCII characters, and `filename*`
 * (RFC 8187), if that is not the same, UTF-8 without control characters. Neither begins with a dot.
 */
void disposition_write(struct mk_buf *out, struct mk_str name, struct mk_str suffix);

#endif
