// SPDX-License-Identifier: Apache-2.0
#include "logger.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>

static const struct {
    struct mk_str start;
    const char *here;
} directives[] = {
    {MK_STR("%h"), "client"},
    {MK_STR("%a"), "client"},
    {MK_STR("%u"), "user"},
    {MK_STR("%t"), "time_clf"},
    {MK_STR("%r"), "request"},
    {MK_STR("%>s"), "status"},
    {MK_STR("%s"), "status"},
    {MK_STR("%b"), "body_bytes_out"},
    {MK_STR("%B"), "body_bytes_out"},
    {MK_STR("%O"), "bytes_out"},
    {MK_STR("%D"), "request_time_us"},
    {MK_STR("%m"), "method"},
    {MK_STR("%U"), "path"},
    {MK_STR("%v"), "host"},
    {MK_STR("%V"), "host"},
    {MK_STR("%{"), "header_NAME"},
};

const char *foreign_find_directive(struct mk_str s)
{
    for (size_t i = 0; i < MK_COUNT_OF(directives); i++)
        if (mk_str_starts(s, directives[i].start))
            return directives[i].here;
    return NULL;
}

enum { VALUES_MAX = LINE_FIXED_MAX / LINE_VARIABLE_FIXED };

#define JSON \
    "json $time_iso8601 $peer $client $user $host $method $target $protocol $status $bytes_in $body_bytes_in " \
    "$bytes_out $body_bytes_out $request_time_us $first_byte_us $referer $agent $listener $tls_version $tls_cipher " \
    "$request_id $traceparent $aborted $worker"
#define UPSTREAM " $upstream $upstream_status $upstream_connect_us $upstream_head_us $upstream_us $retries"

static const struct named_format {
    const char *name;
    struct mk_str text, of_gateways; /* the second one of hosts that forward requests; `.p` NULL: the same */
} named_formats[] = {
    {.name = "common", .text = MK_STR("$client - $user [$time_clf] \"$request\" $status $body_bytes_out")},
    {.name = "combined",
     .text = MK_STR("$client - $user [$time_clf] \"$request\" $status $body_bytes_out \"$referer\" \"$agent\"")},
    {.name = "error",
     .text = MK_STR("$time_iso8601 $status \"$request\" host=$host client=$client user=$user referer=\"$referer\" "
                    "id=$request_id $aborted")},
    {.name = "json", .text = MK_STR(JSON), .of_gateways = MK_STR(JSON UPSTREAM)},
};

static const struct named_format *find_named(struct mk_str text)
{
    for (size_t i = 0; i < MK_COUNT_OF(named_formats); i++)
        if (mk_str_ieq(text, mk_str_c(named_formats[i].name)))
            return &named_formats[i];
    return NULL;
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

static const char *find_nearest(struct mk_str name)
{
    const char *best = mk_variable_find_nearest(name);
    for (const struct log_variable *variable = log_variables; variable->name; variable++)
        if (!variable->arg)
            mk_variable_prefer_nearer(name, variable->name, &best);
    return best;
}

static const struct log_variable *find_own(struct mk_str name)
{
    for (const struct log_variable *variable = log_variables; variable->name; variable++)
        if (mk_variable_is_named(variable->name, variable->arg, name))
            return variable;
    return NULL;
}

static int report_unknown(struct format_parser *parser, struct mk_str name)
{
    const char *same = mk_variable_find_foreign(name), *near = same ? same : find_nearest(name);
    mk_buf_addf(parser->error, "there is no variable \"%.*s\"", MK_STR_ARG(name));
    if (near)
        mk_buf_addf(parser->error, "; did you mean \"%s\"?", near);
    else
        mk_buf_addf(parser->error, "; the page of the plugin lists them, $header_NAME is any header of a request");
    return -EINVAL;
}

/* Tells whether the op has a value that may be truncated. */
static bool has_value(const struct log_op *op)
{
    return op->request_variable || (op->variable && !op->variable->number);
}

static struct log_op *add_op(struct format_parser *parser, size_t fixed)
{
    assert(parser->format->n < parser->ops_max);
    parser->format->fixed += (uint32_t)fixed;
    return &parser->ops[parser->format->n++];
}

static int add_variable(struct format_parser *parser, struct mk_str name)
{
    if (name.len > MK_VARIABLE_NAME_BYTES_MAX) {
        mk_buf_addf(parser->error, "the name of a variable has more than %d characters", MK_VARIABLE_NAME_BYTES_MAX);
        return -EINVAL;
    }
    struct log_op op = {.variable = find_own(name), .form = parser->quoted ? LINE_QUOTED : LINE_WORD};
    if (!op.variable)
        op.request_variable = mk_variable_find(name);
    if (!op.variable && !op.request_variable)
        return report_unknown(parser, name);
    if (parser->format->json)
        op.form = LINE_JSON;
    parser->format->values += has_value(&op);
    struct log_op *added = add_op(parser, LINE_VARIABLE_FIXED);
    *added = op;
    return mk_variable_parse_arg(op.variable ? op.variable->name : op.request_variable->name,
                                 op.variable ? op.variable->arg : op.request_variable->arg, name, parser->arena,
                                 &added->arg, parser->error);
}

static int add_literal(struct format_parser *parser, struct mk_str text)
{
    if (!text.len)
        return 0;
    struct log_op *op = add_op(parser, text.len);
    *op = (struct log_op){.arg = mk_arena_dup(parser->arena, text)};
    return op->arg.p ? 0 : -ENOMEM;
}

static int parse_text(struct format_parser *parser, struct mk_str text, size_t *ret_at)
{
    struct mk_str rest = text, literal, name;
    int r;
    while ((r = mk_variable_next(&rest, &literal, &name, parser->error)) == 1) {
        for (size_t i = 0; i < literal.len; i++)
            parser->quoted ^= literal.p[i] == '"';
        *ret_at = (size_t)(literal.p - text.p) + literal.len;
        int err = add_literal(parser, literal);
        if (err == 0 && name.p)
            err = add_variable(parser, name);
        if (err < 0)
            return err;
    }
    if (r < 0)
        *ret_at = (size_t)(rest.p - text.p);
    return r;
}

/* Returns the number of blanks at the beginning. */
static size_t count_blanks(struct mk_str s)
{
    size_t n = 0;
    while (n < s.len && s.p[n] == ' ')
        n++;
    return n;
}

static int add_member(struct format_parser *parser, struct mk_str name)
{
    MK_BUF_ON_STACK(literal, MK_VARIABLE_NAME_BYTES_MAX + 8);
    mk_buf_addf(&literal, "%s\"%.*s\":", parser->format->n ? "," : "{", MK_STR_ARG(name));
    int err = literal.err ? 0 : add_literal(parser, mk_buf_str(&literal)); /* the name is refused then */
    return err == 0 ? add_variable(parser, name) : err;
}

/* Parses a JSON format, which has variables and blanks only. */
static int parse_json(struct format_parser *parser, struct mk_str text, size_t *ret_at)
{
    struct mk_str rest = mk_str(text.p + *ret_at, text.len - *ret_at), literal, name;
    int r;
    while ((r = mk_variable_next(&rest, &literal, &name, parser->error)) == 1) {
        size_t blanks = count_blanks(literal);
        *ret_at = (size_t)(literal.p - text.p) + blanks;
        if (blanks < literal.len) {
            mk_buf_addf(parser->error, "behind \"json\" stand variables only, such as $status");
            return -EINVAL;
        }
        int err = name.p ? add_member(parser, name) : 0;
        if (err < 0)
            return err;
    }
    if (r < 0) {
        *ret_at = (size_t)(rest.p - text.p);
        return r;
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
        const char *here = foreign_find_directive(mk_str_after(text, i));
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

/* Parses a text; stores where a mistake is in `*ret_at`. Returns as mk_conf_parse_fn. */
static int parse_format(struct format *f, struct mk_str text, size_t *ret_at, struct mk_arena *arena,
                        struct mk_buf *error)
{
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
    if (err == -EINVAL)
        *ret_at = at;
    if (err == 0 && f->fixed > LINE_FIXED_MAX) {
        mk_buf_addf(error, "the format is too long for a line of %d bytes", LINE_BYTES_MAX);
        err = -EINVAL;
    }
    return err;
}

/* Parses a format that has a name, and what it is for hosts that forward requests. */
static int parse_named(struct format *f, const struct named_format *named, struct mk_arena *arena, struct mk_buf *error)
{
    size_t at;
    int err = parse_format(f, named->text, &at, arena, error);
    if (err < 0 || !named->of_gateways.p)
        return err;
    struct format *of_gateways = mk_arena_alloc(arena, sizeof(*f));
    f->of_gateways = of_gateways;
    return of_gateways ? parse_format(of_gateways, named->of_gateways, &at, arena, error) : -ENOMEM;
}

int format_parse(const struct mk_conf_value *value, void *format, struct mk_arena *arena, struct mk_buf *error)
{
    const struct named_format *named = find_named(value->text);
    size_t at;
    if (named)
        return parse_named(format, named, arena, error);
    size_t *fault = value->fault ? value->fault : &at;
    return parse_format(format, value->text, fault, arena, error);
}

/* ── lines ── */

/* `sizes`: what each value keeps while those before it are added; NULL: nothing. */
static void put_ops(const struct format *f, struct line *l, const struct log_entry *e, const uint16_t *sizes)
{
    for (const struct log_op *op = f->ops, *end = op + f->n; op < end; op++) {
        if (sizes && has_value(op))
            l->kept -= *sizes++;
        if (op->variable || op->request_variable)
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
static void put_ops_truncated(const struct format *f, struct line *l, const struct log_entry *e)
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
    put_ops_truncated(f, l, e);
}

void format_put_lost(const struct format *f, struct line *l, uint64_t lost)
{
    line_put(l, f->json ? MK_STR("{\"time_iso8601\":\"") : MK_STR("# "));
    line_put_iso(l);
    line_put(l, f->json ? MK_STR("\",\"lost\":") : MK_STR(" "));
    line_put_number(l, lost);
    line_put(l, f->json ? MK_STR("}") : MK_STR(" lines were lost here: the log could not be written in time"));
}
