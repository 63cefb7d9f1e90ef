// SPDX-License-Identifier: Apache-2.0
/*
 * The objects `param`, "param.1" and "param.2": what the wildcards of a pattern match.
 */
#include "objects.h"
#include "request/request.h"
#include "route/dispatch.h"

#include <errno.h>
#include <limits.h>

/* Returns the number of the parameter of that name, or -1. */
static int find(const duda_request_t *dr, const char *name)
{
    const struct dispatch *d = dr->dispatch;
    for (unsigned i = 0; i < d->n; i++) {
        if (mk_str_eq(d->route->at.names[i], mk_str_c(name)))
            return (int)i;
    }
    return -1;
}

static bool exists(const duda_request_t *dr, int n)
{
    return n >= 0 && (unsigned)n < dr->dispatch->n;
}

static const char *get_id(duda_request_t *dr, int n)
{
    if (request_check(dr, "param->get_id()") < 0)
        return NULL;
    return exists(dr, n) ? dr->dispatch->values[n].p : NULL;
}

static const char *get_name(duda_request_t *dr, int n)
{
    if (request_check(dr, "param->name()") < 0)
        return NULL;
    return exists(dr, n) ? dr->dispatch->route->at.names[n].p : NULL;
}

static const char *get(duda_request_t *dr, const char *name)
{
    if (request_check(dr, "param->get()") < 0)
        return NULL;
    return get_id(dr, find(dr, name));
}

static int get_number(duda_request_t *dr, const char *name, long *ret)
{
    if (request_check(dr, "param->get_number()") < 0 || !ret)
        return -EINVAL;
    const char *value = get(dr, name);
    return value ? urlencoded_number(value, ret) : -ENOENT;
}

static int count(duda_request_t *dr)
{
    if (request_check(dr, "param->count()") < 0)
        return 0;
    return (int)dr->dispatch->n;
}

static int get_len(duda_request_t *dr, const char *name)
{
    if (request_check(dr, "param->len()") < 0)
        return -ENOENT;
    int n = find(dr, name);
    return n < 0 ? -ENOENT : (int)dr->dispatch->values[n].len;
}

const struct duda_api_param object_param = {
    .get = get,
    .get_number = get_number,
    .count = count,
    .len = get_len,
    .get_id = get_id,
    .name = get_name,
};

/* ── levels 0 and 1 ── */

static char *copy_by_number(duda_request_t *dr, short n)
{
    if (request_check(dr, "param->get()") < 0)
        return NULL;
    const char *value = get_id(dr, n);
    size_t size = value ? dr->dispatch->values[n].len + 1 : 0;
    char *copy = value ? object_mem.alloc(size) : NULL; /* the service frees it */
    return copy ? memcpy(copy, value, size) : NULL;
}

static int get_number_by_number(duda_request_t *dr, short n, long *ret)
{
    if (request_check(dr, "param->get_number()") < 0 || !ret)
        return -1;
    const char *value = get_id(dr, n);
    return value && urlencoded_number(value, ret) == 0 ? 0 : -1;
}

static short count_short(duda_request_t *dr)
{
    return (short)count(dr);
}

static short get_len_by_number(duda_request_t *dr, short n)
{
    if (request_check(dr, "param->len()") < 0)
        return -1;
    size_t len = exists(dr, n) ? dr->dispatch->values[n].len : 0;
    return exists(dr, n) && len <= SHRT_MAX ? (short)len : -1;
}

const struct duda_api_param_1 object_param_1 = {
    .get = copy_by_number,
    .get_number = get_number_by_number,
    .count = count_short,
    .len = get_len_by_number,
};

/* ── level 2 ── */

static char *get_text(duda_request_t *dr, const char *name)
{
    return (char *)(uintptr_t)get(dr, name);
}

static int get_number_or_fail(duda_request_t *dr, const char *name, long *ret)
{
    return get_number(dr, name, ret) == 0 ? 0 : -1;
}

const struct duda_api_param_2 object_param_2 = {
    .get = get_text,
    .get_number = get_number_or_fail,
    .count = count_short,
};
