// SPDX-License-Identifier: Apache-2.0
/*
 * Reads labels of counters, and hides counters by them (<monkey/counters.h>).
 */
#include "base/counters_memory.h"

enum { LABELS_BYTES_MAX = 2048 }; /* as counters.c formats them */

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

/* ── counters of what is gone ── */

struct hiding {
    struct mk_str plugin, label;
    mk_counter_used_fn is_used;
    void *ctx;
};

/* Copies the labels of a counter, which others may change. Returns them, cut at the size of the storage. */
static struct mk_str copy_labels(const struct mk__counter_series *s, char *storage, size_t size)
{
    mk__counters_memory_lock_labels(false);
    size_t n = s->labels_len < size ? s->labels_len : size;
    memcpy(storage, s->labels, n);
    mk__counters_memory_unlock_labels();
    return mk_str(storage, n);
}

/* Hides a counter that still has these labels, unless another process has begun to use the memory meanwhile. */
static void hide_series(const struct mk__counter_series *s, struct mk_str labels)
{
    mk__counters_memory_lock_labels(false);
    if (mk_str_eq(labels, mk_str(s->labels, s->labels_len)) && mk__counters_memory_may_hide())
        mk__counters_memory_set_state(s, MK__COUNTER_HIDDEN);
    mk__counters_memory_unlock_labels();
    atomic_store(&mk__counters_memory_has_reusable, true);
}

/* `is_used` may take locks under which others open counters: it is called without that of the labels. */
static int hide_unused(const struct mk__counter_family *f, const struct mk__counter_series *s, void *ctx)
{
    const struct hiding *h = ctx;
    char value[MK_COUNTER_LABEL_VALUE_BYTES], storage[LABELS_BYTES_MAX];
    if (!mk_str_eq(mk__counters_memory_get_plugin(f), h->plugin))
        return 0;
    struct mk_str labels = copy_labels(s, storage, sizeof(storage));
    if (mk_counter_label_get(labels, h->label, value).len && !h->is_used(labels, h->ctx))
        hide_series(s, labels);
    return 0;
}

void mk_counters_hide(const char *plugin, const char *label, mk_counter_used_fn is_used, void *ctx)
{
    struct hiding h = {mk_str_c(plugin), mk_str_c(label), is_used, ctx};
    if (mk__counters_memory_may_hide())
        mk__counters_memory_visit(hide_unused, &h);
}
