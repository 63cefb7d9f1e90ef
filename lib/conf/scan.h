// SPDX-License-Identifier: Apache-2.0
/*
 * The syntax of the indented mode, and nothing of its meaning: bytes in, spans out, pure.
 *
 *     # a comment                    [SECTION] and @directives start at column 1
 *     @SET root=/srv/www             a key is indented as deep as the first key of its file
 *     [HOST]
 *         DocumentRoot "${root}/a b" # a comment begins at the start of a word
 *
 * A word is bare, or stands in double quotes as a whole. `\"`, `\#` and `\${` mean the character itself,
 * in quotes `\\` too; any other backslash stays. `${...}` belongs to its word, whatever is in it.
 */
#ifndef MK_CONF_SCAN_H
#define MK_CONF_SCAN_H

#include <monkey/str.h>

enum mk__scan_kind { MK__SCAN_END, MK__SCAN_ERROR, MK__SCAN_SECTION, MK__SCAN_KEY, MK__SCAN_INCLUDE, MK__SCAN_SET };

enum { MK__SCAN_LINE_MAX = 4096 };

/* Whether messages explain nginx syntax, such as braces and semicolons. Builds for small devices do not. */
enum { MK__SCAN_HINTS = !MK_SMALL };

struct mk__scan {
    struct mk_str rest;   /* the lines to come */
    uint32_t line;        /* the number of the line that was read last */
    struct mk_str indent; /* of the first key, empty before it */
    uint32_t indent_line; /* where that key stands */
    uint32_t braces;      /* so many are open: the lines in them are skipped */
    bool had_braces;      /* that was reported */
};

struct mk__scan_line {
    enum mk__scan_kind kind;
    struct mk_str name;      /* of the section, the key or the variable */
    struct mk_str value;     /* from the first word to the last, still quoted; empty = none */
    uint32_t col, value_col; /* from 1, in bytes; of an error: where it is */
    bool section;            /* of an error: the line would begin a section */
    char error[160];
};

struct mk__scan_word {
    struct mk_str raw; /* without its quotes */
    bool quoted;
};

/* The text must stay while the spans are used. A byte order mark is skipped. */
void mk__scan_init(struct mk__scan *s, struct mk_str text);

/* The next line that is not blank; MK__SCAN_END for ever after the last. After an error the scan goes on. */
void mk__scan_next(struct mk__scan *s, struct mk__scan_line *line);

/*
 * Cuts the next word off `rest`: 1, or 0 at the end or before a comment. -EINVAL with a sentence, and
 * `rest` then starts at the offending byte.
 */
int mk__scan_word(struct mk_str *rest, struct mk__scan_word *word, const char **ret_error);

/* True when `s` begins with a backslash that takes its meaning from the next character. */
bool mk__scan_is_escape(struct mk_str s, bool quoted);

/* The length of the `${...}` that `s` begins with; 0 when it does not, or when the brace is never closed. */
size_t mk__scan_variable(struct mk_str s);

#endif
