// SPDX-License-Identifier: Apache-2.0
/*
 * Conditions of rules: the values of `When`, all of which must hold.
 *
 *     method GET HEAD             the method is one of these
 *     query lang                  the query has the parameter
 *     query lang =de =at          one of its values is one of these, or matches an expression (~, ~* ignores the case)
 *     header User-Agent ~*bot     the same for a header
 *     !query lang =de             a `!` in front: the condition does not hold
 *
 * Names and values of parameters are compared decoded (a `+` is a blank), names of headers in any case of letters. All
 * functions are pure; memory comes from the arena of the configuration only.
 */
#ifndef REDIRECT_WHEN_H
#define REDIRECT_WHEN_H

#include <monkey/conf.h>

/* A name or value of a parameter that is longer cannot be compared. */
enum { WHEN_VALUE_BYTES_MAX = 8192 };

enum when_subject { WHEN_METHOD, WHEN_QUERY, WHEN_HEADER };

/* A text; or an expression, if `pattern.regex` is set. */
struct when_value {
    struct mk_str text;
    struct mk_pattern pattern;
};

struct when_condition {
    uint8_t subject; /* enum when_subject */
    bool negated;
    struct mk_str name;        /* of the parameter or header */
    struct when_value *values; /* methods, or values of which one must be there; none: any */
    uint32_t n;
};

struct when {
    struct when_condition *items;
    uint32_t n;
};

/* What conditions look at. */
struct when_request {
    struct mk_str method, query;
    struct mk_str (*header)(void *ctx, struct mk_str name); /* returns the value; `.p` NULL: there is none */
    void *ctx;
};

/* Parses one condition and adds it to a struct when; an mk_conf_parse_fn. */
int when_parse(const struct mk_conf_value *value, void *when, struct mk_arena *arena, struct mk_buf *error);

/*
 * Returns 1 (all conditions hold), 0 (one does not), or -EOVERFLOW or -ENOMEM (it is not known: an expression costs too
 * much, or a value is too long).
 */
int when_holds(const struct when *when, const struct when_request *request);

/* Returns true if a condition is about the query, which rewrites may change. */
bool when_needs_query(const struct when *when);

#endif
