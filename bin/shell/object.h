// SPDX-License-Identifier: Apache-2.0
/*
 * One line of an answer: a flat JSON object.
 */
#ifndef SHELL_OBJECT_H
#define SHELL_OBJECT_H

#include <stdbool.h>
#include <stddef.h>

enum { OBJECT_MEMBERS_MAX = 40 };

enum object_kind { OBJECT_STRING, OBJECT_NUMBER, OBJECT_BOOL };

struct object_member {
    const char *key, *value; /* a number as its digits, a bool as "true" or "false" */
    enum object_kind kind;
    char digits[32];
};

struct object {
    struct json_t *json; /* has the strings */
    unsigned n;
    struct object_member items[OBJECT_MEMBERS_MAX];
};

/*
 * Reads a line of `len` bytes. Members after the 40th are left out; a string ends at a NUL in it. Returns false if it
 * is no flat object of strings, numbers and bools, or a key has a byte other than visible ASCII; there is nothing to
 * release then.
 */
bool object_read(const char *line, size_t len, struct object *ret);
void object_release(struct object *o);

/* Returns the value of a member; NULL: there is none. */
const char *object_get(const struct object *o, const char *key);

#endif
