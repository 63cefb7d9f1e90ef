// SPDX-License-Identifier: Apache-2.0
/*
 * The named fields of a line: a row each.
 */
#ifndef LOGGER_VARIABLES_H
#define LOGGER_VARIABLES_H

#include "format.h"

/* A field in a format, or (`field` NULL) a literal. */
struct format_op {
    const struct log_variable *variable;
    struct mk_str arg; /* the literal; the name of a header */
    enum line_form form;
};

/* One of `text`, `number` and `put`. */
struct log_variable {
    const char *name;
    /* A value that a client may have chosen; `.p` NULL: there is none. */
    struct mk_str (*text)(const struct log_entry *e, const struct format_op *s);
    /* False: there is none. */
    bool (*number)(const struct log_entry *e, uint64_t *ret);
    /* Writes for itself, LINE_VARIABLE_FIXED bytes of what is fixed at the most. */
    void (*put)(struct line *l, const struct log_entry *e, const struct format_op *s);
    const char *doc;
    bool has_arg; /* the name is a prefix: $header_NAME */
};

/* Ends with a row without a name. */
extern const struct log_variable log_variables[];

void variables_put(struct line *l, const struct log_entry *e, const struct format_op *s);

#endif
