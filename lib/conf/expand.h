// SPDX-License-Identifier: Apache-2.0
/*
 * From a value as it is written to its words: quotes and escapes resolved, `${NAME}` and
 * `${NAME:-default}` replaced by a variable of @SET, else of the environment. What a variable brings
 * into a bare word is split at blanks; it is never read as syntax again.
 */
#ifndef MK_CONF_EXPAND_H
#define MK_CONF_EXPAND_H

#include <monkey/buf.h>

enum { MK__WORDS_MAX = 128, MK__WORDS_BYTES_MAX = 8192 };

struct mk__variable {
    const struct mk__variable *next;
    struct mk_str name, value;
    bool failed; /* its line was reported as wrong: what uses it fails without a word */
};

struct mk__words {
    struct mk_buf text; /* the words, with one space between them */
    uint32_t n;
    struct mk_str word[MK__WORDS_MAX];
    uint32_t col[MK__WORDS_MAX]; /* where each came from */
    char storage[MK__WORDS_BYTES_MAX];
};

struct mk__expand_error {
    uint32_t col;
    bool unset;     /* a variable that is defined nowhere */
    char text[160]; /* empty: what is wrong was reported where the variable is set */
};

/*
 * Splits a value that the scanner accepted and that begins at column `col`. False with `*ret_error` set:
 * a variable that is defined nowhere, or too long a result.
 */
bool mk__expand(const struct mk__variable *variables, struct mk_str value, uint32_t col, struct mk__words *words,
                struct mk__expand_error *ret_error);

/* One word as it is. False when it is too long or has control bytes. */
bool mk__expand_literal(struct mk_str word, struct mk__words *words);

#endif
