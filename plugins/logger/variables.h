// SPDX-License-Identifier: Apache-2.0
/*
 * The variables of a format: those of requests (<monkey/variables.h>), and one row for each of those that are known
 * when the exchange is over.
 */
#ifndef LOGGER_VARIABLES_H
#define LOGGER_VARIABLES_H

#include <monkey/variables.h>

#include "line.h"

/* An exchange that is over. */
struct log_entry {
    struct mk_request *req;
    unsigned worker;
};

struct log_variable;

/* One step of a format: a variable of one of two kinds, or (both NULL) a literal. */
struct log_op {
    const struct log_variable *variable;
    const struct mk_variable *request_variable;
    struct mk_str arg; /* the literal; the argument of the variable, empty if it has none */
    enum line_form form;
};

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
    enum mk_variable_arg arg;
};

/* Ends with a row without a name. */
extern const struct log_variable log_variables[];

void variables_put(struct line *l, const struct log_entry *e, const struct log_op *op);

#endif
