// SPDX-License-Identifier: Apache-2.0
/*
 * Conditions of rules for requests: the values of a key `When`, all of which must hold.
 *
 *     method GET POST             the method is one of these; GET means HEAD, too
 *     query lang                  the query has the parameter
 *     query lang =de =at          one of its values is one of these, or matches an expression (~, ~* ignores the case)
 *     header User-Agent ~*bot     the same for a header
 *     !query lang =de             a `!` in front: the condition does not hold
 *
 * Names and values of parameters are compared decoded (a `+` is a blank), names of headers in any case of letters.
 * Functions about a request run in the thread of its worker. All others are pure; memory comes from the arena of the
 * configuration only. In the kit: plugins link -lmonkey-kit.
 */
#ifndef MONKEY_WHEN_H
#define MONKEY_WHEN_H

#include "../conf.h"

MK_C_BEGIN

/* A name or value of a parameter that is longer cannot be compared. */
enum { MK_WHEN_VALUE_BYTES_MAX = 8192 };

enum mk_when_subject { MK_WHEN_METHOD, MK_WHEN_QUERY, MK_WHEN_HEADER };

/* A text; or an expression, if `pattern.regex` is set, with its `~` in `text`. */
struct mk_when_value {
    struct mk_str text;
    struct mk_pattern pattern;
};

struct mk_when_condition {
    uint8_t subject; /* enum mk_when_subject */
    bool negated;
    struct mk_str name;           /* of the parameter or header */
    struct mk_when_value *values; /* methods, or values of which one must be there; none: any */
    uint32_t n;
};

struct mk_when {
    struct mk_when_condition *items;
    uint32_t n;
};

/* The row of the key, for a member of the type struct mk_when. */
#define MK_WHEN_KEY(type, member) \
    MK_CONF_KEY_CUSTOM( \
        type, member, "When", NULL, \
        "A condition; of several lines all must hold. `method GET POST`: the method is one of these, and " \
        "GET means HEAD, too; `query lang`: the query has the parameter; `query lang =de =at`: with one " \
        "of these values; `header User-Agent ~*bot`: the header matches an expression (`~*` ignores the " \
        "case). A `!` in front negates: `!header Cookie`.", \
        .flags = MK_CONF_REPEAT, .unit = "condition", .parse = mk_when_parse)

/* What conditions look at. */
struct mk_when_request {
    struct mk_str method, query;
    struct mk_str (*header)(void *ctx, struct mk_str name); /* returns the value; `.p` NULL: there is none */
    void *ctx;
};
struct mk_explain; /* <monkey/inspect.h> */
struct mk_request;
/* Describe a request, and one that is explained. Valid as long as the head of the request, and the explanation. */
MK_API struct mk_when_request mk_when_describe(struct mk_request *req);
MK_API struct mk_when_request mk_when_describe_explained(struct mk_explain *e);

/* Parses one condition and adds it to a struct mk_when; an mk_conf_parse_fn. */
MK_API int mk_when_parse(const struct mk_conf_value *value, void *when, struct mk_arena *arena, struct mk_buf *error);

/*
 * Returns 1 (all conditions hold), 0 (one does not), or -EOVERFLOW or -ENOMEM (it is not known: an expression costs too
 * much, or a value is too long).
 */
MK_API int mk_when_holds(const struct mk_when *when, const struct mk_when_request *request);

/* Returns true if the conditions hold for each request for which those of `later` hold; false: it is not known. */
MK_API bool mk_when_covers(const struct mk_when *when, const struct mk_when *later);

/* Returns true if a condition is about the query, which rewrites may change. */
MK_API bool mk_when_needs_query(const struct mk_when *when);

MK_C_END

#endif
