// SPDX-License-Identifier: Apache-2.0
/*
 * One row per type of value: noun, units, parser and printer. Ranges, messages and the manual are derived from the
 * rows, so that they cannot contradict each other.
 */
#include "conf/value.h"
#include "base/regex.h"
#include "conf/foreign_syntax.h"
#include "conf/suggest.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

struct value_unit {
    const char *suffix;
    uint64_t factor;
};

struct value_type {
    const char *noun;
    int (*parse)(const struct mk_conf_key *key, const struct mk_conf_value *v, void *field, struct mk_arena *a);
    void (*print)(const struct mk_conf_key *key, const void *field, struct mk_buf *out);
    const struct value_unit *units; /* largest first; other spellings after the smallest */
    const char *bare;               /* unit of a bare number */
    int64_t min, max;
    bool words; /* may have more than one word */
};

static const struct value_unit sizes[] = {{"G", 1 << 30}, {"M", 1 << 20}, {"K", 1 << 10}, {"B", 1},
                                          {"g", 1 << 30}, {"m", 1 << 20}, {"k", 1 << 10}, {NULL, 0}};
static const struct value_unit durations[] = {{"d", 86400000}, {"h", 3600000}, {"m", 60000},
                                              {"s", 1000},     {"ms", 1},      {NULL, 0}};

static const struct value_type types[];

static bool is_word(struct mk_str s, const char *word)
{
    return mk_str_ieq(s, mk_str_c(word));
}

/* ── one word ── */

static int parse_bool(const struct mk_conf_key *key, const struct mk_conf_value *v, void *field, struct mk_arena *a)
{
    bool on = is_word(v->text, "On");
    (void)key, (void)a;
    if (!on && !is_word(v->text, "Off"))
        return -EINVAL;
    *(bool *)field = on;
    return 0;
}

static void print_bool(const struct mk_conf_key *key, const void *field, struct mk_buf *out)
{
    (void)key;
    mk_buf_adds(out, *(const bool *)field ? MK_STR("On") : MK_STR("Off"));
}

static int parse_enum(const struct mk_conf_key *key, const struct mk_conf_value *v, void *field, struct mk_arena *a)
{
    (void)a;
    for (int i = 0; key->names[i]; i++)
        if (is_word(v->text, key->names[i])) {
            *(int *)field = i;
            return 0;
        }
    return -EINVAL;
}

static void print_enum(const struct mk_conf_key *key, const void *field, struct mk_buf *out)
{
    assert(*(const int *)field >= 0);
    mk__value_quote(mk_str_c(key->names[*(const int *)field]), out);
}

/* ── numbers ── */

static bool is_in_range(const struct mk_conf_key *key, int64_t n)
{
    const struct value_type *t = &types[key->type];
    bool none = !key->min && !key->max;
    return n >= (none ? t->min : key->min) && n <= (key->max ? key->max : t->max);
}

static int parse_int(const struct mk_conf_key *key, const struct mk_conf_value *v, void *field, struct mk_arena *a)
{
    bool minus = v->text.len && v->text.p[0] == '-';
    uint64_t n;

    (void)a;
    if (!mk_str_u64(mk_str_after(v->text, minus), INT64_MAX, &n))
        return -EINVAL;
    int64_t value = minus ? -(int64_t)n : (int64_t)n;
    if (!is_in_range(key, value))
        return -EINVAL;
    *(int64_t *)field = value;
    return 0;
}

static void print_int(const struct mk_conf_key *key, const void *field, struct mk_buf *out)
{
    (void)key;
    mk_buf_addf(out, "%" PRId64, *(const int64_t *)field);
}

static uint64_t find_factor(const struct mk_conf_key *key, struct mk_str suffix)
{
    assert(types[key->type].units);
    const struct value_type *t = &types[key->type];
    if (!suffix.len)
        suffix = mk_str_c(key->unit ? key->unit : t->bare);
    for (const struct value_unit *u = t->units; u->suffix; u++)
        if (mk_str_eq(suffix, mk_str_c(u->suffix)))
            return u->factor;
    return 0;
}

static size_t count_digits(struct mk_str s)
{
    size_t n = 0;
    while (n < s.len && mk_is_digit(s.p[n]))
        n++;
    return n;
}

static bool parse_units(const struct mk_conf_key *key, struct mk_str s, uint64_t *ret_value)
{
    size_t digits = count_digits(s);
    uint64_t factor = find_factor(key, mk_str_after(s, digits));
    return factor && mk_str_u64(mk_str(s.p, digits), INT64_MAX / factor, ret_value) &&
           is_in_range(key, (int64_t)(*ret_value *= factor));
}

static void print_units(const struct mk_conf_key *key, uint64_t value, struct mk_buf *out)
{
    const struct value_unit *u = types[key->type].units;
    while (u->factor > 1 && value % u->factor)
        u++;
    bool bare = value == 0 || (*u->suffix == 'B' && find_factor(key, MK_STR_NONE) == 1);
    mk_buf_addf(out, "%" PRIu64 "%s", value / u->factor, bare ? "" : u->suffix);
}

static int parse_size(const struct mk_conf_key *key, const struct mk_conf_value *v, void *field, struct mk_arena *a)
{
    uint64_t value;
    (void)a;
    if (!parse_units(key, v->text, &value))
        return -EINVAL;
    *(uint64_t *)field = value;
    return 0;
}

static void print_size(const struct mk_conf_key *key, const void *field, struct mk_buf *out)
{
    print_units(key, *(const uint64_t *)field, out);
}

static int parse_duration(const struct mk_conf_key *key, const struct mk_conf_value *v, void *field, struct mk_arena *a)
{
    assert(key->size == sizeof(uint32_t) || key->size == sizeof(uint64_t));
    uint64_t value;
    (void)a;
    if (!parse_units(key, v->text, &value))
        return -EINVAL;
    if (key->size == sizeof(value))
        *(uint64_t *)field = value;
    else
        *(uint32_t *)field = (uint32_t)value;
    return 0;
}

static void print_duration(const struct mk_conf_key *key, const void *field, struct mk_buf *out)
{
    bool is_long = key->size == sizeof(uint64_t);
    print_units(key, is_long ? *(const uint64_t *)field : *(const uint32_t *)field, out);
}

/* ── texts ── */

static int parse_string(const struct mk_conf_key *key, const struct mk_conf_value *v, void *field, struct mk_arena *a)
{
    struct mk_str s = mk_arena_dup(a, v->text);
    (void)key;
    if (!s.p)
        return -ENOMEM;
    *(struct mk_str *)field = s;
    return 0;
}

static void print_string(const struct mk_conf_key *key, const void *field, struct mk_buf *out)
{
    (void)key;
    mk__value_quote(*(const struct mk_str *)field, out);
}

/* Returns where a list with commas has its first comma; SIZE_MAX: it is none, or its commas may be of an expression. */
static MK_COLD size_t find_comma(struct mk_str text)
{
    static const char *const starts[] = {"/", "=/", "*.", "~"};
    bool is_regex = text.p[0] == '~';
    for (size_t i = 1; i < text.len; i++) {
        struct mk_str next = mk_str_after(text, i + 1);
        if (text.p[i] == ',' && !next.len)
            return i;
        for (size_t k = is_regex ? 3 : 0; text.p[i] == ',' && k < MK_COUNT_OF(starts); k++)
            if (mk_str_starts(next, mk_str_c(starts[k])))
                return i;
    }
    return SIZE_MAX;
}

/* Tells whether a word looks like a pattern, and not like the end of one with a blank. */
static MK_COLD bool starts_pattern(struct mk_str word)
{
    return word.len && (memchr("/=~", word.p[0], 3) || memchr(word.p, '*', word.len));
}

/* Checks what only a word without quotes cannot have: a comma of a list, a fragment. */
static MK_COLD int check_bare_pattern(const struct mk_conf_value *value, struct mk_str word, struct mk_buf *error)
{
    size_t comma = find_comma(word);
    if (comma != SIZE_MAX)
        return mk_conf_fault(value, 0, comma, error,
                             "a comma does not separate patterns, and is part of a path: put the pattern in quotes if "
                             "paths have it");
    const char *hash = memchr(word.p, '#', word.len);
    if (!hash)
        return 0;
    return mk_conf_fault(value, 0, (size_t)(hash - word.p), error,
                         "browsers keep fragments for themselves: leave out what begins with #, or put the pattern in "
                         "quotes if names of files have the sign");
}

/* Checks that a value is one pattern: a second one behind a blank would be part of the first, which then never matches.
 */
static MK_COLD int check_one_pattern(const struct mk_conf_value *value, struct mk_buf *error)
{
    struct mk_str first = value->n ? value->words[0] : MK_STR("");
    bool is_sign = mk_str_eq(first, MK_STR("~")) || mk_str_eq(first, MK_STR("~*")) || mk_str_eq(first, MK_STR("^~"));
    if (!first.len || is_sign || first.p[0] == '\'') /* mk_pattern_parse() has a sentence */
        return 0;
    if (value->n > 1 && starts_pattern(value->words[1]))
        return mk_conf_fault(value, 1, 0, error,
                             "this is a second pattern, and one is taken here: write a section for each, or an "
                             "expression such as ~^/(a|b)(/|$)");
    if (value->n > 1)
        return mk_conf_fault(value, 1, 0, error, "a blank ends a pattern: put it in quotes if paths have the blank");
    return value->quoted && !value->quoted[0] ? check_bare_pattern(value, first, error) : 0;
}

typedef int (*parse_pattern_fn)(struct mk_pattern *pattern, struct mk_str text, struct mk_arena *arena,
                                struct mk_buf *error);

static MK_COLD int parse_pattern(const struct mk_conf_value *value, struct mk_pattern *pattern, parse_pattern_fn parse,
                                 struct mk_arena *arena, struct mk_buf *error)
{
    struct mk_str text = mk_arena_dup(arena, value->text);
    int r = text.p ? parse(pattern, text, arena, error) : -ENOMEM;
    if (r == -EINVAL && value->fault)
        *value->fault = (size_t)(pattern->text.p - text.p);
    if (r < 0 || pattern->kind != MK_PATTERN_REGEX)
        return r;
    struct mk_str place = mk_conf_place(value, arena);
    mk__regex_set_location(pattern->regex, place);
    return place.p ? 0 : -ENOMEM;
}

MK_COLD int mk_conf_expression(const struct mk_conf_value *value, void *field, struct mk_arena *arena,
                               struct mk_buf *error)
{
    return parse_pattern(value, field, mk_pattern_parse_expression, arena, error);
}

int mk_conf_pattern(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    int err = check_one_pattern(value, error);
    return err < 0 ? err : parse_pattern(value, field, mk_pattern_parse, arena, error);
}

int mk_conf_patterns(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    struct mk_patterns *list = field;
    for (uint32_t i = 0; i < value->n; i++) {
        struct mk_conf_value word = *value;
        struct mk_pattern *items = mk_arena_grow(arena, list->items, list->n, sizeof(*items));
        if (!items)
            return -ENOMEM;
        word.text = value->words[i];
        word.words = &value->words[i];
        word.n = 1;
        word.quoted = value->quoted ? &value->quoted[i] : NULL;
        list->items = items;
        int err = mk_conf_pattern(&word, &items[list->n], arena, error);
        if (err == -EINVAL && value->fault)
            *value->fault += (size_t)(word.text.p - value->text.p);
        if (err < 0)
            return err;
        list->n++;
    }
    if (!value->n)
        mk_buf_addf(error, "a pattern for paths is missing");
    return value->n ? 0 : -EINVAL;
}

int mk_conf_networks(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    struct mk_networks *list = field;
    for (uint32_t i = 0; i < value->n; i++) {
        struct mk_network *items = mk_arena_grow(arena, list->items, list->n, sizeof(*items));
        if (!items)
            return -ENOMEM;
        list->items = items;
        if (mk_network_parse(value->words[i], &items[list->n], error) < 0) {
            if (value->fault)
                *value->fault = (size_t)(value->words[i].p - value->text.p);
            return -EINVAL;
        }
        list->n++;
    }
    return 0;
}

struct mk_str mk_conf_path(const struct mk_conf_value *value, struct mk_str path, struct mk_arena *arena)
{
    char cwd[4096] = "";
    bool absolute = path.len && path.p[0] == '/', dir_absolute = value->dir.len && value->dir.p[0] == '/';

    while (mk_str_starts(path, MK_STR("./")))
        path = mk_str_after(path, 2);
    if (absolute || !path.len)
        return mk_arena_dup(arena, path);
    if (!dir_absolute && !getcwd(cwd, sizeof(cwd)))
        return MK_STR_NONE;
    size_t cwd_len = strlen(cwd), slash = cwd_len > 0 && cwd[cwd_len - 1] != '/';
    size_t len = cwd_len + slash + value->dir.len + path.len;
    char *p = mk_arena_alloc(arena, len + 1);
    if (p)
        snprintf(p, len + 1, "%s%s%.*s%.*s", cwd, slash ? "/" : "", MK_STR_ARG(value->dir), MK_STR_ARG(path));
    return mk_str(p, p ? len : 0);
}

/* Returns what is wrong with the path of a file's line; options have been read by a shell. NULL: nothing. */
static const char *find_fault(const struct mk_conf_value *value, struct mk_str path)
{
    return value->dir.len ? mk__foreign_syntax_check_path(path) : NULL;
}

/* Returns the word that has this part of the value; `n`: none, it is not of the value. */
static uint32_t find_word(const struct mk_conf_value *value, struct mk_str part)
{
    uint32_t i = 0;
    while (i < value->n && (part.p < value->words[i].p || part.p >= value->words[i].p + value->words[i].len))
        i++;
    return i;
}

/* Notes a path that is relative to its file, so that the value can be printed for another file. Returns 0 or -ENOMEM.
 */
static int note_path(const struct mk_conf_value *value, struct mk_str part, struct mk_str path, struct mk_arena *arena)
{
    const struct mk__value_source *source = value->origin;
    uint32_t word = find_word(value, part), end = word + 1;
    if (!source || word == value->n || mk_str_eq(path, part))
        return 0;
    struct mk__word_path *note = mk_arena_alloc(arena, sizeof(*note));
    if (!note)
        return -ENOMEM;
    while (end < value->n && value->words[end].p < part.p + part.len)
        end++;
    *note = (struct mk__word_path){.next = source->words->paths, .word = word, .words = end - word, .path = path};
    note->begin = (uint32_t)(part.p - value->words[word].p);
    source->words->paths = note;
    return 0;
}

int mk_conf_read_path(const struct mk_conf_value *value, struct mk_str text, struct mk_str *ret, struct mk_arena *arena,
                      struct mk_buf *error)
{
    const char *wrong = find_fault(value, text);
    if (wrong) {
        mk_buf_addf(error, "%s", wrong);
        return -EINVAL;
    }
    *ret = mk_conf_path(value, text, arena);
    return ret->p ? note_path(value, text, *ret, arena) : -ENOMEM;
}

static int parse_path(const struct mk_conf_key *key, const struct mk_conf_value *v, void *field, struct mk_arena *a)
{
    if ((!v->text.len && key->flags & MK_CONF_REQUIRED) || find_fault(v, v->text))
        return -EINVAL;
    struct mk_str s = mk_conf_path(v, v->text, a);
    if (!s.p)
        return -ENOMEM;
    *(struct mk_str *)field = s;
    return 0;
}

int mk_conf_add_words(const struct mk_conf_value *value, uint32_t nth, struct mk_conf_list *list,
                      struct mk_arena *arena)
{
    for (uint32_t i = nth; i < value->n; i++) {
        struct mk_str *items = mk_arena_grow(arena, list->items, list->n, sizeof(*items));
        if (!items)
            return -ENOMEM;
        list->items = items;
        if (!(items[list->n] = mk_arena_dup(arena, value->words[i])).p)
            return -ENOMEM;
        list->n++;
    }
    return 0;
}

static int parse_list(const struct mk_conf_key *key, const struct mk_conf_value *v, void *field, struct mk_arena *a)
{
    (void)key;
    return mk_conf_add_words(v, 0, field, a);
}

static void print_list(const struct mk_conf_key *key, const void *field, struct mk_buf *out)
{
    const struct mk_conf_list *list = field;
    (void)key;
    for (uint32_t i = 0; i < list->n; i++) {
        if (i)
            mk_buf_addc(out, ' ');
        mk__value_quote(list->items[i], out);
    }
}

/* clang-format off */
static const struct value_type types[] = {
    [MK_CONF_BOOL] = {.noun = "On or Off", .parse = parse_bool, .print = print_bool},
    [MK_CONF_INT] = {.noun = "a number", .parse = parse_int, .print = print_int, .min = INT64_MIN, .max = INT64_MAX},
    [MK_CONF_SIZE] = {.noun = "a size", .parse = parse_size, .print = print_size, .max = INT64_MAX,
                      .units = sizes, .bare = "B"},
    [MK_CONF_DURATION] = {.noun = "a duration", .parse = parse_duration, .print = print_duration, .max = UINT32_MAX,
                          .units = durations, .bare = "s"},
    [MK_CONF_STRING] = {.noun = "a text", .parse = parse_string, .print = print_string, .words = true},
    [MK_CONF_PATH] = {.noun = "a path", .parse = parse_path, .print = print_string, .words = true},
    [MK_CONF_LIST] = {.noun = "words", .parse = parse_list, .print = print_list, .words = true},
    [MK_CONF_ENUM] = {.noun = "one of", .parse = parse_enum, .print = print_enum},
    [MK_CONF_CUSTOM] = {.noun = "a value", .words = true},
};
/* clang-format on */

/* ── messages ── */

static void print_limit(const struct mk_conf_key *key, int64_t limit, struct mk_buf *out)
{
    if (key->type == MK_CONF_INT)
        print_int(key, &limit, out);
    else
        print_units(key, (uint64_t)limit, out);
}

static void describe_range(const struct mk_conf_key *key, struct mk_buf *out)
{
    if (!types[key->type].max || (!key->max && !key->min))
        return;
    mk_buf_addf(out, !key->max ? " of at least " : " from ");
    print_limit(key, key->min, out);
    if (!key->max)
        return;
    mk_buf_addf(out, " to ");
    print_limit(key, key->max, out);
}

void mk__value_describe(const struct mk_conf_key *key, struct mk_buf *out)
{
    assert(key->type <= MK_CONF_CUSTOM);
    const struct value_type *t = &types[key->type];

    if (key->type == MK_CONF_CUSTOM && key->unit) {
        mk_buf_addf(out, "%s", key->unit);
        return;
    }
    mk_buf_addf(out, "%s", t->noun);
    for (int i = 0; key->type == MK_CONF_ENUM && key->names[i]; i++)
        mk_buf_addf(out, "%s%s", i ? ", " : " ", key->names[i]);
    describe_range(key, out);
}

/* Words that other programs use, and the name to suggest for them if the key has it. */
static const struct {
    const char *word, *meant;
} synonyms[] = {
    {"yes", "On"},        {"true", "On"},      {"1", "On"},        {"y", "On"},        {"no", "Off"},
    {"enabled", "On"},    {"disabled", "Off"}, {"enable", "On"},   {"disable", "Off"}, {"false", "Off"},
    {"0", "Off"},         {"n", "Off"},        {"none", "Off"},    {"err", "error"},   {"crit", "error"},
    {"alert", "error"},   {"emerg", "error"},  {"fatal", "error"}, {"notice", "info"}, {"trace", "debug"},
    {"verbose", "debug"},
};

/* Units as other programs write them, in any case. */
static const struct {
    const char *spelling, *unit;
} foreign_units[] = {
    {"byte", "B"}, {"bytes", "B"},  {"kb", "K"},      {"kib", "K"},  {"mb", "M"},     {"mib", "M"},     {"gb", "G"},
    {"gib", "G"},  {"msec", "ms"},  {"sec", "s"},     {"secs", "s"}, {"second", "s"}, {"seconds", "s"}, {"min", "m"},
    {"mins", "m"}, {"minute", "m"}, {"minutes", "m"}, {"hour", "h"}, {"hours", "h"},  {"day", "d"},     {"days", "d"},
};

/* Writes a number with the unit that was probably meant, if the key takes it. Returns it, or NULL. */
static const char *suggest_unit(const struct mk_conf_key *key, struct mk_str text, char *to, size_t size)
{
    uint64_t value;
    size_t digits = count_digits(text);
    for (size_t i = 0; i < MK_COUNT_OF(foreign_units); i++) {
        if (!is_word(mk_str_after(text, digits), foreign_units[i].spelling))
            continue;
        int n = snprintf(to, size, "%.*s%s", (int)digits, text.p, foreign_units[i].unit);
        return n > 0 && (size_t)n < size && parse_units(key, mk_str(to, (size_t)n), &value) ? to : NULL;
    }
    return NULL;
}

static const char *find_synonym(struct mk_str text, const char *name)
{
    for (size_t i = 0; i < MK_COUNT_OF(synonyms); i++)
        if (is_word(text, synonyms[i].word) && is_word(mk_str_c(name), synonyms[i].meant))
            return name;
    return NULL;
}

/* Returns the value that was probably meant, or NULL. */
static const char *suggest_value(const struct mk_conf_key *key, struct mk_str text)
{
    static const char *const on_off[] = {"On", "Off", NULL};
    struct mk__suggestion suggestion = mk__suggest_init(text);

    if (key->type != MK_CONF_BOOL && key->type != MK_CONF_ENUM)
        return NULL;
    const char *const *names = key->type == MK_CONF_ENUM ? key->names : on_off;
    for (int i = 0; names[i]; i++)
        mk__suggest_add(&suggestion, names[i]);
    for (int i = 0; names[i] && !suggestion.name; i++)
        suggestion.name = find_synonym(text, names[i]);
    return suggestion.name;
}

/* Adds what other servers' value of the key is here. */
static void describe_equivalent(const struct mk_conf_key *key, struct mk_str text, struct mk_buf *error)
{
    if (key->type == MK_CONF_INT && is_word(mk_str_c(key->name), "Workers") && is_word(text, "auto"))
        mk_buf_addf(error, "; 0 starts one for each processor");
    if (key->type == MK_CONF_BOOL && is_word(mk_str_c(key->name), "KeepAlive") && count_digits(text))
        mk_buf_addf(error, "; how long is KeepAliveTimeout");
}

static void describe_bad_value(const struct mk_conf_key *key, struct mk_str text, struct mk_buf *error)
{
    const struct value_type *t = &types[key->type];
    char number[32];
    const char *meant = t->units ? suggest_unit(key, text, number, sizeof(number)) : suggest_value(key, text);
    int shown = text.len > 80 ? 80 : (int)text.len;

    mk_buf_addf(error, " wants ");
    mk__value_describe(key, error);
    mk_buf_addf(error, ", not \"%.*s\"", shown, text.p);
    if (meant)
        mk_buf_addf(error, MK__SUGGEST_PHRASE "\"%s\"?", meant);
    else
        describe_equivalent(key, text, error);
    if (t->units)
        mk_buf_addf(error, t->units == sizes ? " (units: B, K, M, G)" : " (units: ms, s, m, h, d)");
}

static int parse_custom(const struct mk_conf_key *key, const struct mk_conf_value *value, void *field,
                        struct mk_arena *arena, struct mk_buf *error)
{
    mk_buf_addf(error, ": ");
    size_t before = error->len;
    int r = key->parse(value, field, arena, error);
    if (r < 0 && error->len == before) { /* the parser gave no reason */
        error->len = 0;
        describe_bad_value(key, value->text, error);
    }
    return r < 0 ? r : 0;
}

int mk__value_parse(const struct mk_conf_key *key, const struct mk_conf_value *value, void *field,
                    struct mk_arena *arena, struct mk_buf *error)
{
    assert(key->type <= MK_CONF_CUSTOM);
    const struct value_type *t = &types[key->type];

    if (key->type == MK_CONF_CUSTOM)
        return parse_custom(key, value, field, arena, error);
    if (!t->words && value->n > 1) {
        mk_buf_addf(error,
                    t->units ? " takes a number with its unit, and no blank between them" : " takes one value only");
        return -E2BIG;
    }
    int r = t->parse(key, value, field, arena);
    const char *fault = r == -EINVAL && key->type == MK_CONF_PATH ? find_fault(value, value->text) : NULL;
    if (fault)
        mk_buf_addf(error, ": %s", fault);
    else if (r == -EINVAL)
        describe_bad_value(key, value->text, error);
    return r;
}

void mk__value_print(const struct mk_conf_key *key, const void *field, struct mk_buf *out)
{
    assert(types[key->type].print);
    types[key->type].print(key, field, out);
}

/*
 * Returns whether a word can be read without quotes. One that ends with a brace or a semicolon, or that is a sign, is
 * taken for the syntax of another server.
 */
static bool is_bare(struct mk_str text)
{
    bool bare = text.len > 0 && !strchr("{;", text.p[text.len - 1]);
    for (size_t i = 0; i < text.len; i++)
        bare = bare && !strchr(" \t\"\\#$", text.p[i]);
    return bare && !mk__foreign_syntax_is_sign(text);
}

void mk__value_quote(struct mk_str text, struct mk_buf *out)
{
    if (is_bare(text))
        mk_buf_adds(out, text);
    else
        mk__value_add_quoted(text, out);
}

void mk__value_add_quoted(struct mk_str text, struct mk_buf *out)
{
    mk_buf_addc(out, '"');
    for (size_t i = 0; i < text.len; i++) {
        char c = text.p[i];
        if (c == '"' || c == '\\' || (c == '$' && i + 1 < text.len && text.p[i + 1] == '{'))
            mk_buf_addc(out, '\\');
        mk_buf_addc(out, c);
    }
    mk_buf_addc(out, '"');
}
