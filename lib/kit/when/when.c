// SPDX-License-Identifier: Apache-2.0
/*
 * Parses conditions, and tells whether they hold (<monkey/kit/when.h>).
 */
#include <monkey/kit/when.h>

#include <monkey/base/escape.h>

#include <ctype.h>
#include <errno.h>

static const char *const subject_names[] = {
    [MK_WHEN_METHOD] = "method", [MK_WHEN_QUERY] = "query", [MK_WHEN_HEADER] = "header"};
enum { SUBJECTS = MK_COUNT_OF(subject_names) };

/* ── parsing ── */

static int add_value(struct mk_when_condition *c, struct mk_when_value v, struct mk_arena *arena)
{
    struct mk_when_value *values = mk_arena_grow(arena, c->values, c->n, sizeof(*values));
    if (!values)
        return -ENOMEM;
    c->values = values;
    values[c->n++] = v;
    return 0;
}

static int parse_method(const struct mk_conf_value *value, unsigned word, struct mk_when_condition *c,
                        struct mk_arena *arena, struct mk_buf *error)
{
    struct mk_str text = value->words[word];
    size_t n = mk_str_token_len(text);
    if (text.len && text.p[0] == '!')
        return mk_conf_fault(value, word, 0, error, "a ! belongs in front of the condition: !method GET");
    if (!text.len || n < text.len)
        return mk_conf_fault(value, word, n, error, "a method is a word such as GET");
    for (size_t i = 0; i < text.len; i++)
        if (islower((unsigned char)text.p[i]))
            return mk_conf_fault(value, word, i, error, "methods are written in capitals, and compared so");
    struct mk_when_value v = {.text = mk_arena_dup(arena, text)};
    return v.text.p ? add_value(c, v, arena) : -ENOMEM;
}

/* Parses "=text", "~expression" or "~*expression". */
static int parse_value(const struct mk_conf_value *value, unsigned word, struct mk_when_condition *c,
                       struct mk_arena *arena, struct mk_buf *error)
{
    struct mk_str text = value->words[word];
    struct mk_when_value v = {.text = mk_arena_dup(arena, text)};
    size_t fault = 0;
    if (!v.text.p)
        return -ENOMEM;
    if (text.len && text.p[0] == '~') {
        struct mk_conf_value expression = {
            .text = text, .words = &text, .n = 1, .dir = value->dir, .origin = value->origin, .fault = &fault};
        int err = mk_conf_expression(&expression, &v.pattern, arena, error);
        if (err == -EINVAL)
            return mk_conf_fault(value, word, fault, error, NULL);
        return err < 0 ? err : add_value(c, v, arena);
    }
    if (text.len && text.p[0] == '!')
        return mk_conf_fault(value, word, 0, error, "a ! belongs in front of the condition: !query lang =de");
    if (!text.len || text.p[0] != '=')
        return mk_conf_fault(value, word, 0, error, "a value is =text, or an expression: ~text or ~*text");
    v.text = mk_str_after(v.text, 1);
    return add_value(c, v, arena);
}

/* Returns an enum mk_when_subject, or SUBJECTS if there is none of that name. */
static unsigned find_subject(struct mk_str name)
{
    unsigned i = 0;
    while (i < SUBJECTS && !mk_str_eq(name, mk_str_c(subject_names[i])))
        i++;
    return i;
}

static int parse_name(const struct mk_conf_value *value, struct mk_when_condition *c, struct mk_arena *arena,
                      struct mk_buf *error)
{
    struct mk_str name = value->words[1];
    size_t n = c->subject == MK_WHEN_HEADER ? mk_str_token_len(name) : name.len;
    if (!name.len)
        return mk_conf_fault(value, 1, 0, error, "a name is missing");
    if (n < name.len)
        return mk_conf_fault(value, 1, n, error, "this is not the name of a header");
    c->name = mk_arena_dup(arena, name);
    return c->name.p ? 0 : -ENOMEM;
}

static int parse_condition(const struct mk_conf_value *value, struct mk_when_condition *c, struct mk_arena *arena,
                           struct mk_buf *error)
{
    struct mk_str subject = value->n ? value->words[0] : MK_STR("");
    bool negated = subject.len && subject.p[0] == '!';
    unsigned found = find_subject(mk_str_after(subject, negated));
    if (found == SUBJECTS)
        return mk_conf_fault(value, 0, negated, error,
                             "a condition is: method NAME ..., query NAME [VALUE ...], or header NAME [VALUE ...]");
    *c = (struct mk_when_condition){.subject = (uint8_t)found, .negated = negated};
    if (value->n < 2)
        return mk_conf_fault(value, 0, subject.len, error,
                             found == MK_WHEN_METHOD ? "a method is missing" : "a name is missing");
    int err = found == MK_WHEN_METHOD ? 0 : parse_name(value, c, arena, error);
    for (unsigned i = found == MK_WHEN_METHOD ? 1 : 2; i < value->n && err == 0; i++)
        err =
            found == MK_WHEN_METHOD ? parse_method(value, i, c, arena, error) : parse_value(value, i, c, arena, error);
    return err;
}

int mk_when_parse(const struct mk_conf_value *value, void *when, struct mk_arena *arena, struct mk_buf *error)
{
    struct mk_when *w = when;
    struct mk_when_condition c;
    int err = parse_condition(value, &c, arena, error);
    if (err < 0)
        return err;
    struct mk_when_condition *items = mk_arena_grow(arena, w->items, w->n, sizeof(*items));
    if (!items)
        return -ENOMEM;
    w->items = items;
    items[w->n++] = c;
    return 0;
}

bool mk_when_needs_query(const struct mk_when *when)
{
    for (uint32_t i = 0; i < when->n; i++)
        if (when->items[i].subject == MK_WHEN_QUERY)
            return true;
    return false;
}

/* ── requests ── */

/* Returns whether a method is named; GET means HEAD, too, which reads the same. */
static bool has_method(const struct mk_when_condition *c, struct mk_str method)
{
    bool is_head = mk_str_eq(method, MK_STR("HEAD"));
    uint32_t i = 0;
    while (i < c->n && !mk_str_eq(c->values[i].text, method) &&
           !(is_head && mk_str_eq(c->values[i].text, MK_STR("GET"))))
        i++;
    return i < c->n;
}

/* Returns 1, 0 or -errno: whether one of the values is `text`, or matches it. */
static int match_values(const struct mk_when_condition *c, struct mk_str text)
{
    int r = c->n == 0;
    for (uint32_t i = 0; i < c->n && r == 0; i++)
        r = c->values[i].pattern.regex ? mk_pattern_match(&c->values[i].pattern, text)
                                       : mk_str_eq(c->values[i].text, text);
    return r;
}

/* Adds a name or value of a query, decoded. */
static void decode_value(struct mk_buf *out, struct mk_str s)
{
    for (size_t i = 0; i < s.len; i++) {
        int c = mk_percent_value(s.p + i, s.len - i);
        mk_buf_addc(out, c >= 0 ? (char)c : s.p[i] == '+' ? ' ' : s.p[i]);
        i += c >= 0 ? 2 : 0;
    }
}

/* Matches one parameter, "name=value" or "name". */
static int match_parameter(const struct mk_when_condition *c, struct mk_str parameter)
{
    MK_UNINITIALIZED char storage[MK_WHEN_VALUE_BYTES_MAX];
    struct mk_buf text;
    struct mk_str value = parameter, name = mk_str_split(&value, '=');
    mk_buf_init_fixed(&text, storage, sizeof(storage));
    decode_value(&text, name);
    if (text.err || !mk_str_eq(mk_buf_str(&text), c->name))
        return 0; /* a name of the configuration is not that long */
    mk_buf_init_fixed(&text, storage, sizeof(storage));
    decode_value(&text, value);
    return text.err && c->n ? -EOVERFLOW : match_values(c, mk_buf_str(&text));
}

static int match_query(const struct mk_when_condition *c, struct mk_str query)
{
    int r = 0;
    while (query.len && r == 0) {
        struct mk_str parameter = mk_str_split(&query, '&');
        if (parameter.len)
            r = match_parameter(c, parameter);
    }
    return r;
}

static int match_header(const struct mk_when_condition *c, const struct mk_when_request *request)
{
    struct mk_str value = request->header(request->ctx, c->name);
    return value.p ? match_values(c, value) : 0;
}

static int match_condition(const struct mk_when_condition *c, const struct mk_when_request *request)
{
    int r = c->subject == MK_WHEN_METHOD  ? has_method(c, request->method)
            : c->subject == MK_WHEN_QUERY ? match_query(c, request->query)
                                          : match_header(c, request);
    return r < 0 ? r : (r > 0) != c->negated;
}

int mk_when_holds(const struct mk_when *when, const struct mk_when_request *request)
{
    int r = 1;
    for (uint32_t i = 0; i < when->n && r > 0; i++)
        r = match_condition(&when->items[i], request);
    return r;
}

/* ── covering ── */

static bool has_value(const struct mk_when_condition *c, const struct mk_when_value *v)
{
    uint32_t i = 0;
    if (c->subject == MK_WHEN_METHOD)
        return has_method(c, v->text);
    while (i < c->n && !(mk_str_eq(c->values[i].text, v->text) && !c->values[i].pattern.regex == !v->pattern.regex))
        i++;
    return i < c->n;
}

/* Returns whether each value of `c` is one of `wide`, too. */
static bool is_narrower(const struct mk_when_condition *c, const struct mk_when_condition *wide)
{
    uint32_t i = 0;
    while (i < c->n && has_value(wide, &c->values[i]))
        i++;
    return wide->n == 0 || (c->n && i == c->n);
}

/* Returns whether a condition holds for each request for which `later` holds. */
static bool is_implied(const struct mk_when_condition *c, const struct mk_when_condition *later)
{
    bool is_same = c->subject == MK_WHEN_HEADER ? mk_str_ieq(c->name, later->name) : mk_str_eq(c->name, later->name);
    if (c->subject != later->subject || c->negated != later->negated || !is_same)
        return false;
    return c->negated ? is_narrower(c, later) : is_narrower(later, c);
}

bool mk_when_covers(const struct mk_when *when, const struct mk_when *later)
{
    for (uint32_t i = 0, k; i < when->n; i++) {
        for (k = 0; k < later->n && !is_implied(&when->items[i], &later->items[k]);)
            k++;
        if (k == later->n)
            return false;
    }
    return true;
}
