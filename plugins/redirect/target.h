// SPDX-License-Identifier: Apache-2.0
/*
 * Targets of rules: the value of `To`, whose `$0` to `$9` are captures of the expression in `Match`.
 *
 * What a client chose becomes a part of the path, or of one value of the query, and nothing else: captures are
 * percent-encoded where they are added. All functions are pure.
 */
#ifndef REDIRECT_TARGET_H
#define REDIRECT_TARGET_H

#include <monkey/conf.h>

enum { TARGET_CAPTURED_BYTES_MAX = 8192 }; /* of a path, in one target */

/* A path or a URI, printable ASCII. */
struct target {
    struct mk_str text;
    struct mk_str place; /* file and line */
};

/*
 * Parse a struct target; each is an mk_conf_parse_fn. target_parse_any() accepts a path or a URI; target_parse_host()
 * the same without captures; target_parse_path() a path of this host and a query: no fragment, no segment "." or "..".
 */
int target_parse_any(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error);
int target_parse_host(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error);
int target_parse_path(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error);

bool target_has_captures(struct mk_str to);

/* Returns true for a path of this host; "//host/" is another host. */
bool target_is_path(struct mk_str to);

/* Returns the end of scheme and host in a target. Browsers accept any number of slashes before the host. */
size_t target_find_host_end(struct mk_str to);

/* Reports captures that the expression does not have, and those in the scheme or host of the target at `to_offset`. */
void target_check_captures(const struct mk_conf_check *check, const struct mk_pattern *match, size_t match_offset,
                           struct mk_str to, size_t to_offset);

/* What an expression has captured of the path of a request. */
struct target_captures {
    const struct mk_str *groups; /* NULL: a dollar is a dollar */
    bool has_encoded_slash;      /* mk_request_has_encoded_slash() */
};

/*
 * Adds text of a target, with its captures encoded: in the query each is one value. `query`: the text is a query, or a
 * part of one; else one begins after a `?`.
 */
void target_add_text(struct mk_buf *out, struct mk_str to, const struct target_captures *captures, bool query);

/* Adds a target. The result is a path of this host if the target is one, whatever the captures are. */
void target_add(struct mk_buf *location, struct mk_str to, const struct target_captures *captures);

/* Returns the length of all captures that a target uses, before they are encoded. */
size_t target_count_captured_bytes(struct mk_str to, const struct mk_str *groups);

/* What follows the prefix of a rule in a path. */
struct target_rest {
    struct mk_str text; /* without leading slashes */
    bool slash;         /* a slash leads to it; it may be all that follows */
};

/* For other kinds of patterns nothing follows. */
struct target_rest target_find_rest(const struct mk_pattern *match, struct mk_str path);

/* Adds the slash of a rest to a target, if that does not end with one; after a query, only if text follows. */
void target_add_slash(struct mk_buf *out, const struct target_rest *rest);

#endif
