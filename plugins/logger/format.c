// SPDX-License-Identifier: Apache-2.0
/*
 * Parses formats into ops, and runs them (format.h).
 */
#include "format.h"

#include "foreign.h"

#include <assert.h>
#include <errno.h>

enum { NAME_BYTES_MAX = 80, VALUES_MAX = LINE_FIXED_MAX / LINE_VARIABLE_FIXED };

static const struct {
    const char *name;
    struct mk_str text;
} named_formats[] = {
    {"common", MK_STR("$client - $user [$time_clf] \"$request\" $status $body_bytes_out")},
    {"combined", MK_STR("$client - $user [$time_clf] \"$request\" $status $body_bytes_out \"$referer\" \"$agent\"")},
    {"error", MK_STR("$time_iso8601 $status \"$request\" host=$host client=$client user=$user referer=\"$referer\" "
                     "id=$request_id $aborted")},
    {"json",
     MK_STR("json $time_iso8601 $peer $client $user $host $method $target $protocol $status $bytes_in "
            "$body_bytes_in $bytes_out $body_bytes_out $request_time_us $first_byte_us $referer $agent $listener "
            "$tls_version $tls_cipher $request_id $traceparent $aborted $worker")},
};

static struct mk_str resolve_name(struct mk_str text)
{
    for (size_t i = 0; i < MK_COUNT_OF(named_formats); i++)
        if (mk_str_ieq(text, mk_str_c(named_formats[i].name)))
            return named_formats[i].text;
    return text;
}

/* ── parsing ── */

struct format_parser {
    struct format *format;
    struct log_op *ops;
    size_t ops_max;
    struct mk_arena *arena;
    struct mk_buf *error;
    bool quoted; /* within quotes of the text */
};

static bool is_name_char(char c)
{
    return (mk_lower(c) >= 'a' && mk_lower(c) <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

/* Parses the name behind a dollar, alone or in brackets. Returns the length with the dollar; 0 if there is none. */
static size_t parse_name(struct mk_str s, struct mk_str *ret_name)
{
    const char *close = s.len > 1 && s.p[1] == '{' ? "}" : s.len > 1 && s.p[1] == '(' ? ")" : NULL;
    size_t from = close ? 2 : 1, end = from;
    while (end < s.len && (close ? s.p[end] != *close : is_name_char(s.p[end])))
        end++;
    *ret_name = mk_str(s.p + from, end - from);
    if (end == from || (close && end == s.len))
        return 0;
    return end + (close ? 1 : 0);
}

static bool is_named(const struct log_variable *variable, struct mk_str name)
{
    struct mk_str own = mk_str_c(variable->name);
    return variable->arg ? name.len > own.len && mk_str_starts(name, own) : mk_str_eq(name, own);
}

static const char *find_nearest(struct mk_str name)
{
    const char *best = NULL;
    unsigned least = name.len < 6 ? 2 : (unsigned)name.len / 3 + 1;
    for (const struct log_variable *variable = log_variables; variable->name; variable++) {
        unsigned distance = mk_str_distance(name, mk_str_c(variable->name));
        if (distance < least && !variable->arg) {
            best = variable->name;
            least = distance;
        }
    }
    return best;
}

static const struct log_variable *find_variable(struct format_parser *parser, struct mk_str name)
{
    for (const struct log_variable *variable = log_variables; variable->name; variable++)
        if (is_named(variable, name))
            return variable;
    const char *same = foreign_find_variable(name), *near = same ? same : find_nearest(name);
    mk_buf_addf(parser->error, "there is no variable \"%.*s\"", MK_STR_ARG(name));
    if (near)
        mk_buf_addf(parser->error, "; did you mean \"%s\"?", near);
    else
        mk_buf_addf(parser->error, "; the page of the plugin lists them, $header_NAME is any header of a request");
    return NULL;
}

/* Sets the argument of a variable: User-Agent for "header_user_agent", but a_b for "note_a_b". */
static int set_arg(struct format_parser *parser, struct log_op *op, struct mk_str name)
{
    size_t prefix = strlen(op->variable->name);
    char *copy = mk_arena_alloc(parser->arena, name.len);
    if (!copy)
        return -ENOMEM;
    for (size_t i = prefix; i < name.len; i++) {
        if (!is_name_char(name.p[i]) && name.p[i] != '-') {
            mk_buf_addf(parser->error, "\"%.*s\" is not the name of a %s", MK_STR_ARG(name),
                        op->variable->arg == ARG_NOTE ? "note" : "header");
            return -EINVAL;
        }
        copy[i - prefix] = name.p[i] == '_' && op->variable->arg == ARG_HEADER ? '-' : name.p[i];
    }
    op->arg = mk_str(copy, name.len - prefix);
    return 0;
}

static struct log_op *add_op(struct format_parser *parser, size_t fixed)
{
    assert(parser->format->n < parser->ops_max);
    parser->format->fixed += (uint32_t)fixed;
    return &parser->ops[parser->format->n++];
}

static int add_variable(struct format_parser *parser, struct mk_str name)
{
    if (name.len > NAME_BYTES_MAX) {
        mk_buf_addf(parser->error, "the name of a variable has more than %d characters", NAME_BYTES_MAX);
        return -EINVAL;
    }
    const struct log_variable *variable = find_variable(parser, name);
    if (!variable)
        return -EINVAL;
    struct log_op *op = add_op(parser, LINE_VARIABLE_FIXED);
    enum line_form text_form = parser->quoted ? LINE_QUOTED : LINE_WORD;
    parser->format->values += !variable->number;
    *op = (struct log_op){.variable = variable, .form = parser->format->json ? LINE_JSON : text_form};
    return variable->arg ? set_arg(parser, op, name) : 0;
}

static int add_literal(struct format_parser *parser, struct mk_str text)
{
    if (!text.len)
        return 0;
    struct log_op *op = add_op(parser, text.len);
    *op = (struct log_op){.arg = mk_arena_dup(parser->arena, text)};
    return op->arg.p ? 0 : -ENOMEM;
}

static int report_bad_dollar(struct format_parser *parser)
{
    mk_buf_addf(parser->error,
                "a dollar needs the name of a variable behind it, $status or \\${status}; $$ is a dollar");
    return -EINVAL;
}

static int parse_text(struct format_parser *parser, struct mk_str text, size_t *ret_at)
{
    size_t from = 0, at = 0;
    int err = 0;
    for (; at < text.len && err == 0; *ret_at = at) {
        struct mk_str rest = mk_str(text.p + at, text.len - at), name;
        if (rest.p[0] != '$') {
            parser->quoted ^= rest.p[0] == '"';
            at++;
            continue;
        }
        bool dollar = rest.len > 1 && rest.p[1] == '$';
        size_t n = dollar ? 2 : parse_name(rest, &name);
        err = n ? add_literal(parser, mk_str(text.p + from, at - from + dollar)) : report_bad_dollar(parser);
        if (err == 0 && !dollar)
            err = add_variable(parser, name);
        if (err < 0)
            return err;
        at += n;
        from = at;
    }
    return add_literal(parser, mk_str(text.p + from, at - from));
}

/* Parses a JSON format, which has variables and blanks only. */
static int parse_json(struct format_parser *parser, struct mk_str text, size_t *ret_at)
{
    char before[NAME_BYTES_MAX + 8];
    size_t start = *ret_at;
    for (size_t at = start; at < text.len;) {
        struct mk_str rest = mk_str(text.p + at, text.len - at), name;
        *ret_at = at;
        if (rest.p[0] == ' ') {
            at++;
            continue;
        }
        size_t n = rest.p[0] == '$' ? parse_name(rest, &name) : 0;
        if (!n || name.len > NAME_BYTES_MAX)
            return report_bad_dollar(parser);
        struct mk_buf literal;
        mk_buf_init_fixed(&literal, before, sizeof(before));
        mk_buf_addf(&literal, "%s\"%.*s\":", parser->format->n ? "," : "{", MK_STR_ARG(name));
        int err = add_literal(parser, mk_buf_str(&literal));
        if (err == 0)
            err = add_variable(parser, name);
        if (err < 0)
            return err;
        at += n;
    }
    return add_literal(parser, parser->format->n ? MK_STR("}") : MK_STR("{}"));
}

/*
 * Reports a directive of Apache in a format without variables, which would make each line the same. Returns 0 or
 * -EINVAL.
 */
static int check_directives(struct format_parser *parser, struct mk_str text, size_t *ret_at)
{
    for (size_t i = 0; i < text.len; i++) {
        const char *here = foreign_find_directive(mk_str(text.p + i, text.len - i));
        if (!here)
            continue;
        *ret_at = i;
        mk_buf_addf(parser->error, "a variable begins with a dollar: write $%s in place of %.*s", here,
                    text.len - i < 2 ? 1 : 2, text.p + i);
        return -EINVAL;
    }
    return 0;
}

static size_t count_dollars(struct mk_str text)
{
    size_t n = 0;
    for (size_t i = 0; i < text.len; i++)
        n += text.p[i] == '$';
    return n;
}

int format_parse(const struct mk_conf_value *value, void *format, struct mk_arena *arena, struct mk_buf *error)
{
    struct mk_str text = resolve_name(value->text);
    struct format *f = format;
    struct format_parser parser = {.format = f, .arena = arena, .error = error};
    size_t at = 0;
    *f = (struct format){.json = mk_str_starts(text, MK_STR("json ")), .fixed = 1};
    parser.ops_max = 2 * count_dollars(text) + 1;
    parser.ops = mk_arena_alloc(arena, parser.ops_max * sizeof(struct log_op));
    if (!parser.ops)
        return -ENOMEM;
    f->ops = parser.ops;
    if (f->json)
        at = 5;
    int err = text.len ? f->json ? parse_json(&parser, text, &at) : parse_text(&parser, text, &at) : -EINVAL;
    if (!text.len)
        mk_buf_addf(error, "a format is common, combined, json or a text with variables such as $status");
    if (err == 0 && parser.ops_max == 1)
        err = check_directives(&parser, text, &at);
    if (err == -EINVAL && value->fault && text.p == value->text.p)
        *value->fault = at;
    if (err == 0 && f->fixed > LINE_FIXED_MAX) {
        mk_buf_addf(error, "the format is too long for a line of %d bytes", LINE_BYTES_MAX);
        err = -EINVAL;
    }
    return err;
}

/* ── lines ── */

static bool has_value(const struct log_op *op)
{
    return op->variable && !op->variable->number;
}

/* `sizes`: what each value keeps while those before it are added; NULL: nothing. */
static void put_ops(const struct format *f, struct line *l, const struct log_entry *e, const uint16_t *sizes)
{
    for (const struct log_op *op = f->ops, *end = op + f->n; op < end; op++) {
        if (sizes && has_value(op))
            l->kept -= *sizes++;
        if (op->variable)
            variables_put(l, e, op);
        else
            line_put(l, op->arg);
    }
    assert(l->kept == 0);
}

/* Returns how long a value is alone, at most `max`. */
static size_t measure_value(const struct line *l, const struct log_entry *e, const struct log_op *op, size_t max)
{
    MK_UNINITIALIZED char storage[LINE_BYTES_MAX];
    struct line one = *l;
    line_begin(&one, storage, LINE_VARIABLE_FIXED);
    variables_put(&one, e, op);
    return line_length(&one) < max ? line_length(&one) : max;
}

/* Adds a line whose values do not fit. */
static void put_ops_cut(const struct format *f, struct line *l, const struct log_entry *e)
{
    uint16_t sizes[VALUES_MAX];
    unsigned n = 0;
    size_t share = l->left / f->values < LINE_SHARE ? l->left / f->values : LINE_SHARE;
    assert(f->values <= VALUES_MAX);
    for (const struct log_op *op = f->ops, *end = op + f->n; op < end; op++) {
        if (!has_value(op))
            continue;
        sizes[n] = (uint16_t)measure_value(l, e, op, share);
        l->kept += sizes[n++];
    }
    put_ops(f, l, e, sizes);
}

void format_put(const struct format *f, struct line *l, const struct log_entry *e)
{
    struct line before = *l;
    put_ops(f, l, e, NULL);
    if (MK_LIKELY(!l->cut))
        return;
    *l = before;
    put_ops_cut(f, l, e);
}

void format_put_lost(const struct format *f, struct line *l, uint64_t lost)
{
    line_put(l, f->json ? MK_STR("{\"time_iso8601\":\"") : MK_STR("# "));
    line_put_iso(l);
    line_put(l, f->json ? MK_STR("\",\"lost\":") : MK_STR(" "));
    line_put_number(l, lost);
    line_put(l, f->json ? MK_STR("}") : MK_STR(" lines were lost here: the log could not be written in time"));
}
