// SPDX-License-Identifier: Apache-2.0
/*
 * The headers that a section sets in requests or removes from them: RequestSet and RequestRemove. Their values are
 * split at variables when the configuration is loaded.
 */
#ifndef PROXY_FIELDS_H
#define PROXY_FIELDS_H

#include <monkey/conf.h>
#include <monkey/kit/variables.h>

struct field {
    struct field *next;
    struct mk_str name;
    const struct mk_text_piece *value; /* NULL: it is removed */
};

/* In the order of the lines. */
struct field_list {
    struct field *first, **last;
};

/* Those of a section; constant once the configuration is loaded. */
struct field_changes {
    struct field_list set, remove;
};

/* Parse a struct field_list: the values of RequestSet and RequestRemove; mk_conf_parse_fn. */
int fields_parse_set(const struct mk_conf_value *value, void *list, struct mk_arena *arena, struct mk_buf *error);
int fields_parse_remove(const struct mk_conf_value *value, void *list, struct mk_arena *arena, struct mk_buf *error);

/* Tells whether a header is set. Pure. */
bool fields_set(const struct field_changes *changes, struct mk_str name);
/* Tells whether a header of the client is replaced or removed; `_` counts as `-`, as many backends read it. Pure. */
bool fields_replace(const struct field_changes *changes, struct mk_str name);
/* Tells whether a backend that reads `_` as `-` would take a header of the client for one that is set. Pure. */
bool fields_are_ambiguous(const struct field_changes *changes, struct mk_str name);
/*
 * Writes the headers that are set, each as a line; one whose value is empty is left out. Returns 0, or -EINVAL: a value
 * has a control byte, which could begin a new line.
 */
int fields_write(const struct field_changes *changes, struct mk_request *req, struct mk_buf *out);

#endif
