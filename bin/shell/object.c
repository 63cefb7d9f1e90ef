// SPDX-License-Identifier: Apache-2.0
#include "shell.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

/* Keys are shown as they are. */
static bool is_key(const char *key)
{
    const char *p = key;
    while (*p > 0x20 && *p < 0x7f)
        p++;
    return p > key && !*p;
}

static bool read_value(const json_t *value, struct object_member *m)
{
    m->value = m->digits;
    m->kind = OBJECT_NUMBER;
    if (json_is_integer(value))
        snprintf(m->digits, sizeof(m->digits), "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else if (json_is_real(value))
        snprintf(m->digits, sizeof(m->digits), "%.15g", json_real_value(value));
    else if (json_is_string(value))
        *m = (struct object_member){.value = json_string_value(value), .kind = OBJECT_STRING};
    else
        *m = (struct object_member){.value = json_is_true(value) ? "true" : "false", .kind = OBJECT_BOOL};
    return !json_is_null(value) && !json_is_array(value) && !json_is_object(value);
}

bool object_read(const char *line, size_t len, struct object *ret)
{
    struct object_member extra;
    const char *key;
    json_t *value;
    ret->n = 0;
    ret->json = json_loadb(line, len, JSON_ALLOW_NUL, NULL);
    bool good = json_is_object(ret->json);
    json_object_foreach(ret->json, key, value)
    {
        struct object_member *m = ret->n < OBJECT_MEMBERS_MAX ? &ret->items[ret->n++] : &extra;
        good = good && is_key(key) && read_value(value, m);
        m->key = key;
    }
    if (!good)
        object_release(ret);
    return good;
}

void object_release(struct object *o)
{
    json_decref(o->json);
    o->json = NULL;
}

const char *object_get(const struct object *o, const char *key)
{
    for (unsigned i = 0; i < o->n; i++)
        if (strcmp(o->items[i].key, key) == 0)
            return o->items[i].value;
    return NULL;
}
