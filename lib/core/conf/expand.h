// SPDX-License-Identifier: Apache-2.0
/*
 * Turns a value into words: resolves quotes and escapes, and replaces `${NAME}` and `${NAME:-default}` by a variable of
 * @SET or else of the environment. The value of a variable in an unquoted word is split at blanks; its quotes, escapes
 * and variables are not resolved.
 */
#ifndef MK_CONF_EXPAND_H
#define MK_CONF_EXPAND_H

#include <monkey/base/buf.h>

enum { MK__WORDS_MAX = 128, MK__WORDS_BYTES_MAX = 8192 };

struct mk__variable {
    const struct mk__variable *next;
    struct mk_str name, value;
    bool failed; /* its line was reported as wrong: values that use it fail without a message */
};

/* A part of a value that a parser has read as a path, relative to its file. It lives as long as the value. */
struct mk__word_path {
    struct mk__word_path *next;
    uint32_t word, begin, words; /* the first word, where in it, and how many words it takes */
    struct mk_str path;          /* absolute */
};

struct mk__words {
    struct mk_buf text; /* the words, with one space between them */
    uint32_t n;
    struct mk_str word[MK__WORDS_MAX];
    uint32_t col[MK__WORDS_MAX]; /* column of each word */
    bool quoted[MK__WORDS_MAX];  /* whether it is in quotes, or has an escape */
    struct mk__word_path *paths;
    char storage[MK__WORDS_BYTES_MAX];
};

struct mk__expand_error {
    uint32_t col;
    bool unset;     /* the variable is not defined */
    char text[160]; /* empty: the error was reported at the line that sets the variable */
};

/*
 * Splits a value that the scanner has accepted and that begins at column `col`.
 * Returns false with `*ret_error` set if a variable is not defined or the result is too long.
 */
MK_COLD bool mk__expand(const struct mk__variable *variables, struct mk_str value, uint32_t col,
                        struct mk__words *words, struct mk__expand_error *ret_error);

/* Removes the first word of several. */
MK_COLD void mk__words_drop_first(struct mk__words *words);

/* Makes one word without resolving anything. Returns false if it is too long or contains control bytes. */
MK_COLD bool mk__expand_literal(struct mk_str word, struct mk__words *words);

#endif
