// SPDX-License-Identifier: Apache-2.0
/*
 * The variables of a format, one row for each.
 */
#ifndef LOGGER_VARIABLES_H
#define LOGGER_VARIABLES_H

#include <monkey/request.h>

#include "line.h"

/* An exchange that is over. */
struct log_entry {
    struct mk_request *req;
    unsigned worker;
};

struct log_variable;

/* One step of a format: a variable, or (`variable` NULL) a literal. */
struct log_op {
    const struct log_variable *variable;
    struct mk_str arg; /* the literal; the name of a header or a note */
    enum line_form form;
};

/* What follows a name that is a prefix: $header_NAME. */
enum log_arg { ARG_NONE, ARG_HEADER, ARG_NOTE };

/* One of `text`, `number` and `put`. */
struct log_variable {
    const char *name;
    /* Returns a value that a client may have chosen; `.p` NULL: there is none. */
    struct mk_str (*text)(const struct log_entry *e, const struct log_op *op);
    /* Gets a number. Returns false if there is none. */
    bool (*number)(const struct log_entry *e, uint64_t *ret);
    /* Adds the value itself, at most LINE_VARIABLE_FIXED of the reserved bytes. */
    void (*put)(struct line *l, const struct log_entry *e, const struct log_op *op);
    const char *doc;
    enum log_arg arg;
};

/* Ends with a row without a name. */
extern const struct log_variable log_variables[];

void variables_put(struct line *l, const struct log_entry *e, const struct log_op *op);

#endif
