// SPDX-License-Identifier: Apache-2.0
#include "logger.h"

#include <errno.h>

enum { SAMPLE_MAX = 1000 * 1000, STATUS_MIN = 100, STATUS_MAX = 599 };

/* ── statuses ── */

/* Parses "404" or "4xx". Returns false if it is neither. */
static bool parse_range(struct mk_str word, struct filter_range *ret)
{
    bool is_class = word.len == 3 && mk_str_ieq(mk_str(word.p + 1, 2), MK_STR("xx"));
    uint64_t n;
    if (word.len != 3 || !mk_str_u64(mk_str(word.p, is_class ? 1 : 3), STATUS_MAX, &n))
        return false;
    n *= is_class ? 100 : 1;
    *ret = (struct filter_range){(uint16_t)n, (uint16_t)(is_class ? n + 99 : n)};
    return n >= STATUS_MIN && ret->last <= STATUS_MAX;
}

static int parse_status(const struct mk_conf_value *value, unsigned word, struct filter_statuses *list,
                        struct mk_arena *arena, struct mk_buf *error)
{
    struct filter_range range;
    if (mk_str_ieq(value->words[word], MK_STR("aborted"))) {
        list->aborted = true;
        return 0;
    }
    if (!parse_range(value->words[word], &range))
        return mk_conf_fault(value, word, 0, error,
                             "a status is written as 404, a class as 4xx; or the word is aborted");
    struct filter_range *items = mk_arena_grow(arena, list->items, list->n, sizeof(*items));
    if (!items)
        return -ENOMEM;
    list->items = items;
    items[list->n++] = range;
    return 0;
}

int filter_parse_statuses(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    int err =
        value->n ? 0 : mk_conf_fault(value, 0, 0, error, "a status such as 404, or a class such as 5xx is missing");
    for (unsigned i = 0; i < value->n && err == 0; i++)
        err = parse_status(value, i, field, arena, error);
    return err;
}

/* ── samples ── */

/* Parses "12.5" as 1,250 hundredths. Returns false for anything but a number with at most two decimals. */
static bool parse_hundredths(struct mk_str text, uint64_t *ret)
{
    const char *dot = text.len ? memchr(text.p, '.', text.len) : NULL;
    size_t whole_len = dot ? (size_t)(dot - text.p) : text.len, decimals = dot ? text.len - whole_len - 1 : 0;
    uint64_t whole, part = 0;
    if (decimals > 2 || (dot && !decimals) || !mk_str_u64(mk_str(text.p, whole_len), 100, &whole) ||
        (dot && !mk_str_u64(mk_str(dot + 1, decimals), 99, &part)))
        return false;
    *ret = whole * 100 + (decimals == 1 ? part * 10 : part);
    return true;
}

static bool parse_fraction(struct mk_str text, uint64_t *ret_part, uint64_t *ret_of)
{
    const char *slash = memchr(text.p, '/', text.len);
    if (slash) {
        size_t at = (size_t)(slash - text.p);
        return mk_str_u64(mk_str(text.p, at), SAMPLE_MAX, ret_part) &&
               mk_str_u64(mk_str(slash + 1, text.len - at - 1), SAMPLE_MAX, ret_of);
    }
    *ret_of = 10000;
    return text.p[text.len - 1] == '%' && parse_hundredths(mk_str(text.p, text.len - 1), ret_part);
}

int filter_parse_sample(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    struct filter_sample *sample = field;
    uint64_t part, of;
    (void)arena;
    if (value->n != 1 || !value->text.len || !parse_fraction(value->text, &part, &of) || part == 0 || part > of)
        return mk_conf_fault(value, 0, 0, error, "a sample is a part such as 1% or 1/100, of 1,000,000 at most");
    *sample = (struct filter_sample){(uint32_t)part, (uint32_t)of};
    return 0;
}

/* ── exchanges ── */

static bool has_status(const struct filter_statuses *list, const struct filter_exchange *e)
{
    if (list->n == 0 && !list->aborted)
        return true;
    if (list->aborted && e->aborted)
        return true;
    for (uint32_t i = 0; i < list->n; i++)
        if (e->status >= list->items[i].first && e->status <= list->items[i].last)
            return true;
    return false;
}

bool filter_passes(const struct filter *f, const struct filter_exchange *e, uint32_t *credit)
{
    /* an expression that fails on the path does not match: a line too much is better than one too few */
    if (mk_patterns_match(&f->except, e->path) > 0 || !has_status(&f->statuses, e) ||
        e->time_us < (uint64_t)f->slower_ms * 1000)
        return false;
    if (f->sample.of == 0)
        return true;
    *credit += f->sample.part;
    if (*credit < f->sample.of)
        return false;
    *credit -= f->sample.of;
    return true;
}
