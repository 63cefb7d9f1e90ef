// SPDX-License-Identifier: Apache-2.0
/*
 * The keys and values of a session, as one array of bytes. Pure, but for the memory of the result.
 *
 *     1 byte: length of the key │ 2: of the value, little endian │ key │ NUL │ value │ NUL │ ...
 */
#ifndef DUDA_CORE_SESSION_SESSION_VALUES_H
#define DUDA_CORE_SESSION_SESSION_VALUES_H

#include <monkey/base/str.h>

enum { SESSION_PAIR_BYTES = 5 }; /* in addition to key and value */

/* What one request does to one key. */
struct session_change {
    struct session_change *next;
    struct mk_str key, value;
    bool removes;
};

/* Returns whether the bytes are whole pairs with keys of 1 to 64 bytes. */
bool session_values_check(struct mk_str values);
/* Cuts the next pair off. Returns false at the end, also if the rest is not valid. */
bool session_values_next(struct mk_str *rest, struct mk_str *ret_key, struct mk_str *ret_value);
bool session_values_find(struct mk_str values, struct mk_str key, struct mk_str *ret_value);
const struct session_change *session_values_find_change(const struct session_change *first, struct mk_str key);
/*
 * Makes the values after the changes: for heap_free() with their length; `.p` is NULL if they are empty.
 * Returns 0, -ENOSPC (more than `bytes_max`, or more keys than are allowed) or -ENOMEM.
 */
int session_values_apply(struct mk_str values, const struct session_change *changes, size_t bytes_max,
                         struct mk_str *ret);

#endif
