// SPDX-License-Identifier: Apache-2.0
/*
 * Parses the limits of children (<monkey/kit/child.h>).
 */
#include <monkey/kit/child.h>

#include <errno.h>

enum unit { UNIT_BYTES, UNIT_SECONDS, UNIT_NUMBER };

static const struct row {
    struct mk_str name;
    size_t offset;
    enum unit unit;
    uint64_t min, max;
} rows[] = {
    {MK_STR_INIT("memory"), offsetof(struct mk_child_limits, memory_bytes), UNIT_BYTES, 1 << 20, UINT64_C(1) << 50},
    {MK_STR_INIT("cpu"), offsetof(struct mk_child_limits, cpu_seconds), UNIT_SECONDS, 1, 86400},
    {MK_STR_INIT("files"), offsetof(struct mk_child_limits, files), UNIT_NUMBER, 4, 1 << 20},
    {MK_STR_INIT("processes"), offsetof(struct mk_child_limits, processes), UNIT_NUMBER, 1, 1 << 22},
};

/* What a number is multiplied by, by the letter after it. */
static const struct suffix {
    char letter;
    enum unit unit;
    uint64_t factor;
} suffixes[] = {
    {'K', UNIT_BYTES, 1 << 10}, {'M', UNIT_BYTES, 1 << 20}, {'G', UNIT_BYTES, 1 << 30},
    {'s', UNIT_SECONDS, 1},     {'m', UNIT_SECONDS, 60},    {'h', UNIT_SECONDS, 3600},
};

/* Reads a number with its unit, which bytes and seconds must have. Returns false if it is none, or out of range. */
static bool read_number(struct mk_str text, const struct row *row, uint64_t *ret)
{
    uint64_t factor = row->unit == UNIT_NUMBER;
    for (size_t i = 0; i < MK_COUNT_OF(suffixes) && text.len; i++)
        if (suffixes[i].unit == row->unit && suffixes[i].letter == text.p[text.len - 1])
            factor = suffixes[i].factor;
    if (!factor || !mk_str_u64(mk_str(text.p, text.len - (row->unit != UNIT_NUMBER)), row->max / factor, ret))
        return false;
    *ret *= factor;
    return *ret >= row->min;
}

static const struct row *find_row(struct mk_str name)
{
    for (size_t i = 0; i < MK_COUNT_OF(rows); i++)
        if (mk_str_eq(rows[i].name, name))
            return &rows[i];
    return NULL;
}

static int read_word(struct mk_str word, struct mk_child_limits *limits, struct mk_buf *error)
{
    const char *equals = word.len ? memchr(word.p, '=', word.len) : NULL;
    size_t n = equals ? (size_t)(equals - word.p) : word.len;
    const struct row *row = find_row(mk_str(word.p, n));
    if (!equals || !row) {
        mk_buf_addf(error, "a limit is memory=256M, cpu=30s, files=64 or processes=32, not \"%.*s\"", MK_STR_ARG(word));
        return -EINVAL;
    }
    uint64_t *value = (uint64_t *)((char *)limits + row->offset);
    if (*value) {
        mk_buf_addf(error, "%s is set twice", row->name.p);
        return -EINVAL;
    }
    if (!read_number(mk_str(equals + 1, word.len - n - 1), row, value)) {
        mk_buf_addf(error, "\"%.*s\" is no limit: %s", MK_STR_ARG(word),
                    row->unit == UNIT_BYTES     ? "it takes a size of at least 1M, such as memory=256M"
                    : row->unit == UNIT_SECONDS ? "it takes a time of up to a day, such as cpu=30s"
                                                : "it takes a number, such as processes=32; files=4 at least");
        return -EINVAL;
    }
    return 0;
}

int mk_child_parse_limits(const struct mk_conf_value *value, void *limits, struct mk_arena *arena, struct mk_buf *error)
{
    int err = 0;
    (void)arena;
    if (!value->n)
        return mk_conf_fail(error, "it takes limits such as memory=256M cpu=30s files=64 processes=32");
    for (uint32_t i = 0; i < value->n && err == 0; i++)
        err = read_word(value->words[i], limits, error);
    return err;
}
