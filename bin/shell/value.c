// SPDX-License-Identifier: Apache-2.0
/*
 * Formats values (value.h).
 */
#include "value.h"

#include <stdlib.h>
#include <string.h>

/* ── units ── */

static void add_bytes(struct mk_buf *out, long long n, unsigned n_units)
{
    (void)n_units;
    text_add_bytes(out, (double)n);
}

static void add_short_bytes(struct mk_buf *out, long long n, unsigned n_units)
{
    static const char units[] = "BKMGT";
    double value = (double)n;
    unsigned unit = 0;
    (void)n_units;
    for (; value >= 1024 && unit < 4; unit++)
        value /= 1024;
    mk_buf_addf(out, unit && value < 10 ? "%.1f%c" : "%.0f%c", value, units[unit]);
}

static void add_short_seconds(struct mk_buf *out, long long n, unsigned n_units)
{
    (void)n_units;
    if (n < 60)
        mk_buf_addf(out, "%llds", n);
    else if (n < 3600)
        mk_buf_addf(out, "%lldm%02llds", n / 60, n % 60);
    else if (n < 86400)
        mk_buf_addf(out, "%lldh%02lldm", n / 3600, n / 60 % 60);
    else
        mk_buf_addf(out, "%lldd%02lldh", n / 86400, n / 3600 % 24);
}

static void add_milliseconds(struct mk_buf *out, long long n, unsigned n_units)
{
    (void)n_units;
    mk_buf_addf(out, "%lld ms", n);
}

static void add_short_milliseconds(struct mk_buf *out, long long n, unsigned n_units)
{
    (void)n_units;
    mk_buf_addf(out, "%lldms", n);
}

static void add_clock(struct mk_buf *out, long long n, unsigned n_units)
{
    (void)n_units;
    text_add_clock(out, (uint64_t)n);
}

static const struct unit {
    const char *suffix;
    void (*add)(struct mk_buf *out, long long n, unsigned n_units);
    void (*add_short)(struct mk_buf *out, long long n, unsigned n_units);
} units[] = {{"_bytes", add_bytes, add_short_bytes},
             {"_s", text_add_seconds, add_short_seconds},
             {"_ms", add_milliseconds, add_short_milliseconds},
             {"_unix_us", add_clock, add_clock}};

/* Returns the unit of a key, or NULL, and the length of the key without it. */
static const struct unit *find_unit(const char *key, size_t *ret_len)
{
    size_t len = strlen(key);
    *ret_len = len;
    for (size_t i = 0; i < MK_COUNT_OF(units); i++) {
        size_t n = strlen(units[i].suffix);
        if (len <= n || strcmp(key + len - n, units[i].suffix) != 0)
            continue;
        *ret_len = len - n;
        return &units[i];
    }
    return NULL;
}

size_t value_name_length(const char *key)
{
    size_t len;
    find_unit(key, &len);
    return len;
}

bool value_is_hidden(const char *key)
{
    return key[0] == '_' || strcmp(key, "time_us") == 0; /* of a trace, which has the time of day as well */
}

void value_add(struct mk_buf *out, const struct object_member *m, const struct text_style *style, unsigned n_units)
{
    size_t len;
    const struct unit *unit = m->kind == OBJECT_NUMBER ? find_unit(m->key, &len) : NULL;
    if (unit)
        (style->terminal ? unit->add : unit->add_short)(out, atoll(m->value), n_units);
    else if (m->kind == OBJECT_BOOL)
        mk_buf_adds(out, m->value[0] == 't' ? MK_STR("yes") : MK_STR("no"));
    else
        text_add_safe(out, m->value);
}

/* ── colours ── */

enum text_colour value_colour(const char *key, const char *value)
{
    static const char *const keys[] = {"state", "before", "after"};
    static const struct {
        const char *state;
        enum text_colour colour;
    } states[] = {
        {"idle", DIM},        {"linger", DIM},     {"closed", DIM},          {"handshake", BLUE}, {"new", BLUE},
        {"tunnel", BLUE},     {"read_head", CYAN}, {"read_body", CYAN},      {"handler", YELLOW}, {"disk", YELLOW},
        {"write", GREEN},     {"streams", GREEN},  {"streams_write", GREEN}, {"serving", GREEN},  {"draining", YELLOW},
        {"retiring", YELLOW},
    };
    bool has_state = false;
    for (size_t i = 0; i < MK_COUNT_OF(keys); i++)
        has_state |= strcmp(keys[i], key) == 0;
    for (size_t i = 0; has_state && i < MK_COUNT_OF(states); i++)
        if (strcmp(states[i].state, value) == 0)
            return states[i].colour;
    return PLAIN;
}
