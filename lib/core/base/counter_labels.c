// SPDX-License-Identifier: Apache-2.0
/*
 * Reads and changes labels of counters (<monkey/counters.h>).
 */
#include "base/counters_memory.h"

/* Cuts name="value" off `rest`; the value is still escaped. Returns false at the end, or if it is malformed. */
static bool split_label(struct mk_str *rest, struct mk_str *ret_name, struct mk_str *ret_value)
{
    const char *at = rest->p, *end = rest->p + rest->len, *name = at, *value;
    while (at < end && *at != '=')
        at++;
    if (end - at < 3 || at[1] != '"')
        return false;
    *ret_name = mk_str(name, (size_t)(at - name));
    value = at += 2;
    while (at < end && *at != '"')
        at += *at == '\\' && at + 1 < end ? 2 : 1;
    if (at >= end)
        return false;
    *ret_value = mk_str(value, (size_t)(at - value));
    at++;
    at += at < end && *at == ',';
    *rest = mk_str(at, (size_t)(end - at));
    return true;
}

static struct mk_str unescape_value(struct mk_str value, char *storage)
{
    size_t n = 0;
    for (size_t i = 0; i < value.len && n < MK_COUNTER_LABEL_VALUE_BYTES; i++) {
        char c = value.p[i];
        if (c == '\\' && i + 1 < value.len)
            c = value.p[++i] == 'n' ? '\n' : value.p[i];
        storage[n++] = c;
    }
    return mk_str(storage, n);
}

struct mk_str mk_counter_label_get(struct mk_str labels, struct mk_str name, char *storage)
{
    struct mk_str one, value;
    while (split_label(&labels, &one, &value))
        if (mk_str_eq(one, name))
            return unescape_value(value, storage);
    return MK_STR("");
}

void mk__counter_labels_remove(struct mk_str labels, struct mk_str name, struct mk_buf *out)
{
    struct mk_str one, value;
    while (split_label(&labels, &one, &value)) {
        struct mk_str next = mk_str_eq(one, name) ? MK_STR(MK__COUNTER_REMOVED) : value;
        mk_buf_addf(out, "%s%.*s=\"%.*s\"", out->len ? "," : "", MK_STR_ARG(one), MK_STR_ARG(next));
    }
}
