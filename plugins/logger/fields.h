// SPDX-License-Identifier: Apache-2.0
/*
 * The named fields of a line: a row each.
 */
#ifndef LOGGER_FIELDS_H
#define LOGGER_FIELDS_H

#include "format.h"

/* A field in a format, or (`field` NULL) a literal. */
struct step {
    const struct field *field;
    struct mk_str arg; /* the literal; the name of a header */
    enum line_form form;
};

/* One of `text`, `number` and `put`. */
struct field {
    const char *name;
    /* A value that a client may have chosen; `.p` NULL: there is none. */
    struct mk_str (*text)(const struct entry *e, const struct step *s);
    /* False: there is none. */
    bool (*number)(const struct entry *e, uint64_t *ret);
    /* Writes for itself, LINE_FIELD_FIXED bytes of what is fixed at the most. */
    void (*put)(struct line *l, const struct entry *e, const struct step *s);
    const char *doc;
    bool has_arg; /* the name is a prefix: $header_NAME */
};

/* Ends with a row without a name. */
extern const struct field fields[];

void field_put(struct line *l, const struct entry *e, const struct step *s);

#endif
