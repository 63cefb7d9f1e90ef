// SPDX-License-Identifier: Apache-2.0
#include "template.h"

#include <assert.h>
#include <errno.h>

enum template_op { OP_LITERAL, OP_VALUE, OP_IF, OP_IF_NOT };

/* ── parsing ── */

struct template_reader {
    struct template_parser *parser;
    struct template *out;
    struct template_error *error;
    struct mk_str text;
    size_t at, literal; /* the current byte; where the text begins that is no piece yet */
    bool of_entry, in_code;
    size_t code; /* where the current script or style begins */
    struct {
        uint32_t piece;
        size_t at;
        struct markup markup;
    } open[TEMPLATE_DEPTH_MAX]; /* conditions without an end so far */
    unsigned depth;
};

/* A tag of the template: "%_if_name_%". */
struct template_tag {
    struct mk_str whole, name;
    enum template_op op; /* OP_LITERAL: the end of a condition */
};

static int MK_PRINTF(3, 4) report_error(struct template_reader *r, size_t at, const char *format, ...)
{
    struct mk_buf text;
    va_list args;
    r->error->line = r->error->column = 1;
    for (size_t i = 0; i < at; i++) {
        r->error->column = r->text.p[i] == '\n' ? 1 : r->error->column + 1;
        r->error->line += r->text.p[i] == '\n';
    }
    mk_buf_init_fixed(&text, r->error->text, sizeof(r->error->text));
    va_start(args, format);
    mk_buf_vaddf(&text, format, args);
    va_end(args);
    mk_buf_cstr(&text);
    return -EINVAL;
}

static struct template_piece *add_piece(struct template_reader *r, enum template_op op)
{
    struct template *t = r->out;
    struct template_piece *pieces = mk_arena_grow(r->parser->arena, t->pieces, t->n, sizeof(*pieces));
    if (!pieces)
        return NULL;
    t->pieces = pieces;
    pieces[t->n] = (struct template_piece){.op = (uint8_t)op};
    return &pieces[t->n++];
}

/* Adds the bytes up to the current one as a literal. Returns 0 or -ENOMEM. */
static int add_literal(struct template_reader *r)
{
    if (r->at == r->literal)
        return 0;
    struct template_piece *piece = add_piece(r, OP_LITERAL);
    if (piece)
        piece->text = mk_str(r->text.p + r->literal, r->at - r->literal);
    r->literal = r->at;
    return piece ? 0 : -ENOMEM;
}

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

/* Reads a tag. Returns false for other text. */
static bool read_tag(struct mk_str s, struct template_tag *ret)
{
    size_t end = 2;
    if (!mk_str_starts(s, MK_STR("%_")))
        return false;
    while (end < s.len && is_name_char(s.p[end]))
        end++;
    if (end < 4 || end == s.len || s.p[end] != '%' || s.p[end - 1] != '_')
        return false;
    static const struct mk_str prefixes[] = {MK_STR(""),
                                             MK_STR(""), [OP_IF] = MK_STR("if_"), [OP_IF_NOT] = MK_STR("if_not_")};
    struct mk_str name = mk_str(s.p + 2, end - 3);
    enum template_op op = mk_str_eq(name, MK_STR("end"))             ? OP_LITERAL
                          : mk_str_starts(name, prefixes[OP_IF_NOT]) ? OP_IF_NOT
                          : mk_str_starts(name, prefixes[OP_IF])     ? OP_IF
                                                                     : OP_VALUE;
    name = mk_str(name.p + prefixes[op].len, name.len - prefixes[op].len);
    *ret = (struct template_tag){mk_str(s.p, end + 1), name, op};
    return true;
}

static const char *find_nearest(const struct template_field *fields, struct mk_str name)
{
    const char *best = NULL;
    unsigned least = name.len < 6 ? 3 : (unsigned)name.len / 3 + 2;
    for (const struct template_field *field = fields; field->name; field++) {
        unsigned distance = mk_str_distance(name, mk_str_c(field->name));
        if (distance < least) {
            best = field->name;
            least = distance;
        }
    }
    return best;
}

static int report_unknown(struct template_reader *r, struct mk_str name)
{
    const char *near = find_nearest(r->parser->fields, name);
    int shown = name.len < 64 ? (int)name.len : 64;
    if (!near)
        return report_error(r, r->at, "there is no field %%_%.*s_%%", shown, name.p);
    return report_error(r, r->at, "there is no field %%_%.*s_%%; did you mean %%_%s_%%?", shown, name.p, near);
}

static int find_field(struct template_reader *r, struct mk_str name, const struct template_field **ret)
{
    const struct template_field *field = r->parser->fields;
    while (field->name && !mk_str_eq(mk_str_c(field->name), name))
        field++;
    if (!field->name)
        return report_unknown(r, name);
    if (field->of_entry && !r->of_entry)
        return report_error(r, r->at, "the field %%_%s_%% is one of an entry, for entry.theme only", field->name);
    *ret = field;
    return 0;
}

/* Checks that a value can be escaped where it stands. */
static int check_place(struct template_reader *r, const struct template_field *field)
{
    static const char *const places[] = {
        [MARKUP_CODE] = "in an attribute that holds code or several URLs",
        [MARKUP_UNQUOTED] = "in a value without quotes: write name=\"%_field_%\"",
        [MARKUP_TAG] = "in a tag, outside a value",
        [MARKUP_RAW] = "in a script, a style sheet or similar; an attribute such as data-x=\"%_field_%\" can have it",
        [MARKUP_COMMENT] = "in a comment",
    };
    enum markup_place place = markup_place(&r->parser->markup);
    if (place > MARKUP_URL)
        return report_error(r, r->at, "the field %%_%s_%% cannot be %s", field->name, places[place]);
    if (field->kind == TEMPLATE_HTML && place != MARKUP_TEXT)
        return report_error(r, r->at, "the field %%_%s_%% is HTML, which cannot be in an attribute", field->name);
    return 0;
}

static int add_value(struct template_reader *r, const struct template_tag *tag)
{
    const struct template_field *field;
    int err = find_field(r, tag->name, &field);
    if (err == 0)
        err = check_place(r, field);
    if (err < 0)
        return err;
    struct template_piece *piece = add_piece(r, OP_VALUE);
    if (!piece)
        return -ENOMEM;
    piece->field = field;
    piece->place = (uint8_t)markup_place(&r->parser->markup);
    return 0;
}

static int begin_condition(struct template_reader *r, const struct template_tag *tag)
{
    const struct template_field *field;
    int err = find_field(r, tag->name, &field);
    if (err < 0)
        return err;
    if (r->in_code)
        return report_error(r, r->at, "a script or style sheet cannot have conditions");
    if (r->depth == TEMPLATE_DEPTH_MAX)
        return report_error(r, r->at, "more than %d conditions are within each other", TEMPLATE_DEPTH_MAX);
    struct template_piece *piece = add_piece(r, tag->op);
    if (!piece)
        return -ENOMEM;
    piece->field = field;
    r->open[r->depth].piece = r->out->n - 1;
    r->open[r->depth].at = r->at;
    r->open[r->depth++].markup = r->parser->markup;
    return 0;
}

static int end_condition(struct template_reader *r)
{
    if (r->depth == 0)
        return report_error(r, r->at, "this %%_end_%% has no %%_if_..._%% before it");
    r->depth--;
    if (!markup_is_same(&r->open[r->depth].markup, &r->parser->markup))
        return report_error(r, r->at,
                            "between %%_if_..._%% and %%_end_%% a tag, quote or comment begins or ends, but not both");
    r->out->pieces[r->open[r->depth].piece].next = r->out->n;
    return 0;
}

static int add_tag(struct template_reader *r, const struct template_tag *tag)
{
    int err = add_literal(r);
    if (err == 0)
        err = tag->op == OP_LITERAL ? end_condition(r)
              : tag->op == OP_VALUE ? add_value(r, tag)
                                    : begin_condition(r, tag);
    r->at += tag->whole.len;
    r->literal = r->at;
    if (err == 0 && r->out->n > TEMPLATE_PIECES_MAX)
        err = report_error(r, r->at, "the template has more than %d fields and texts", TEMPLATE_PIECES_MAX);
    return err;
}

/* Collects the contents of scripts and styles. The end tag begins with the last "<". */
static int follow_code(struct template_reader *r)
{
    bool is_script, in_code = markup_is_inline_code(&r->parser->markup, &is_script);
    if (in_code == r->in_code)
        return 0;
    if (in_code) {
        if (r->parser->codes->n == TEMPLATE_CODES_MAX)
            return report_error(r, r->at, "there are more than %d scripts and style sheets", TEMPLATE_CODES_MAX);
        r->code = r->at + 1;
        r->parser->codes->items[r->parser->codes->n].is_script = is_script;
    } else {
        const char *end = memrchr(r->text.p + r->code, '<', r->at - r->code);
        assert(end);
        r->parser->codes->items[r->parser->codes->n++].text =
            mk_str(r->text.p + r->code, (size_t)(end - r->text.p) - r->code);
    }
    r->in_code = in_code;
    return 0;
}

static int read_byte(struct template_reader *r)
{
    char c = r->text.p[r->at];
    if (c == '\0' || c == '\r')
        return report_error(r, r->at, "the text has a %s", c ? "carriage return that no newline follows" : "NUL byte");
    markup_feed(&r->parser->markup, c);
    if (r->parser->markup.has_comment_in_script)
        return report_error(r, r->at, "a script cannot have \"<!\", which may hide its end");
    int err = follow_code(r);
    r->at++;
    return err;
}

static int check_end(struct template_reader *r)
{
    if (r->depth)
        return report_error(r, r->open[r->depth - 1].at, "this condition has no %%_end_%%");
    if (!markup_is_same(&r->parser->markup, &(struct markup){0}))
        return report_error(r, r->at, "the text ends within a tag, a comment, or a script, style or title");
    return 0;
}

int template_parse(struct template_parser *parser, struct mk_str text, bool of_entry, struct template *ret,
                   struct template_error *ret_error)
{
    struct template_reader r = {.parser = parser, .out = ret, .error = ret_error, .text = text, .of_entry = of_entry};
    struct template_tag tag;
    int err = 0;
    *ret = (struct template){0};
    if (text.len > TEMPLATE_BYTES_MAX)
        return report_error(&r, 0, "the text has more than %d bytes", TEMPLATE_BYTES_MAX);
    while (r.at < text.len && err == 0)
        err = text.p[r.at] == '%' && read_tag(mk_str(text.p + r.at, text.len - r.at), &tag) ? add_tag(&r, &tag)
                                                                                            : read_byte(&r);
    if (err == 0)
        err = check_end(&r);
    return err == 0 ? add_literal(&r) : err;
}

/* ── writing ── */

static struct mk_str get_text(const struct template_field *field, void *ctx)
{
    return field->text ? field->text(ctx) : field->text_of(ctx, field->arg);
}

static void write_value(const struct template_piece *piece, struct mk_buf *out, void *ctx)
{
    const struct template_field *field = piece->field;
    if (field->kind == TEMPLATE_HTML)
        field->block(out, ctx);
    else if (field->kind != TEMPLATE_URL && piece->place == MARKUP_URL)
        text_uri(out, get_text(field, ctx));
    else
        text_html(out, get_text(field, ctx), field->kind == TEMPLATE_LINES);
}

void template_write(const struct template *t, struct mk_buf *out, void *ctx)
{
    for (uint32_t i = 0; i < t->n && out->err == 0; i++) {
        const struct template_piece *piece = &t->pieces[i];
        if (piece->op == OP_LITERAL)
            mk_buf_adds(out, piece->text);
        else if (piece->op == OP_VALUE)
            write_value(piece, out, ctx);
        else if ((get_text(piece->field, ctx).len > 0) != (piece->op == OP_IF))
            i = piece->next - 1;
    }
}
