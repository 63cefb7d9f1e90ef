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
static int find_param(const duda_request_t *dr, const char *name)
{
    const struct dispatch *d = dr->dispatch;
    assert(!d->n || (d->route && d->values));
    for (unsigned i = 0; i < d->n; i++) {
        if (mk_str_eq(d->route->at.names[i], mk_str_c(name)))
            return (int)i;
    }
    return -1;
}

static bool has_param(const duda_request_t *dr, int n)
{
    return n >= 0 && (unsigned)n < dr->dispatch->n;
}

static const char *get_value(const duda_request_t *dr, int n)
{
    return has_param(dr, n) ? dr->dispatch->values[n].p : NULL;
}

/* Returns 0, -ENOENT or as urlencoded_number(). */
static int read_number(const duda_request_t *dr, int n, long *ret)
{
    const char *value = get_value(dr, n);
    return value ? urlencoded_number(value, ret) : -ENOENT;
}

static int find_len(const duda_request_t *dr, int n)
{
    return has_param(dr, n) ? (int)dr->dispatch->values[n].len : -ENOENT;
}

REQUEST_CALL(const char *get_id(duda_request_t *dr, int n), request_check, "param->get_id()", NULL, get_value(dr, n))

REQUEST_CALL(const char *get_name(duda_request_t *dr, int n), request_check, "param->name()", NULL,
             has_param(dr, n) ? dr->dispatch->route->at.names[n].p : NULL)

REQUEST_CALL(const char *get_param(duda_request_t *dr, const char *name), request_check, "param->get()", NULL,
             get_value(dr, find_param(dr, name)))

REQUEST_CALL(int get_number(duda_request_t *dr, const char *name, long *ret), request_check, "param->get_number()",
             -EINVAL, ret ? read_number(dr, find_param(dr, name), ret) : -EINVAL)

REQUEST_CALL(int count_params(duda_request_t *dr), request_check, "param->count()", 0, (int)dr->dispatch->n)

REQUEST_CALL(int get_len(duda_request_t *dr, const char *name), request_check, "param->len()", -ENOENT,
             find_len(dr, find_param(dr, name)))

const struct duda_api_param object_param = {
    .get = get_param,
    .get_number = get_number,
    .count = count_params,
    .len = get_len,
    .get_id = get_id,
    .name = get_name,
};

/* ── levels 0 and 1 ── */

static char *copy_value(const duda_request_t *dr, int n)
{
    const char *value = get_value(dr, n);
    size_t size = value ? dr->dispatch->values[n].len + 1 : 0;
    char *copy = value ? object_mem.alloc(size) : NULL; /* the service frees it */
    return copy ? memcpy(copy, value, size) : NULL;
}

REQUEST_CALL(char *copy_by_number(duda_request_t *dr, short n), request_check, "param->get()", NULL, copy_value(dr, n))

REQUEST_CALL(int get_number_by_number(duda_request_t *dr, short n, long *ret), request_check, "param->get_number()", -1,
             ret &&read_number(dr, n, ret) == 0 ? 0 : -1)

static short count_short(duda_request_t *dr)
{
    return (short)count_params(dr);
}

REQUEST_CALL(short get_len_by_number(duda_request_t *dr, short n), request_check, "param->len()", -1,
             has_param(dr, n) && find_len(dr, n) <= SHRT_MAX ? (short)find_len(dr, n) : -1)

const struct duda_api_param_1 object_param_1 = {
    .get = copy_by_number,
    .get_number = get_number_by_number,
    .count = count_short,
    .len = get_len_by_number,
};

/* ── level 2 ── */

static char *get_text(duda_request_t *dr, const char *name)
{
    return (char *)(uintptr_t)get_param(dr, name);
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
