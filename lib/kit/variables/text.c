// SPDX-License-Identifier: Apache-2.0
/*
 * Texts with variables of a request (<monkey/kit/variables.h>), split when the configuration is loaded.
 */
#include <monkey/base/buf.h>
#include <monkey/kit/variables.h>

#include <errno.h>

static int report_control(struct mk_buf *error)
{
    mk_buf_addf(error, "a value has no control bytes");
    return -EINVAL;
}

static int report_variable(struct mk_str name, struct mk_buf *error)
{
    const char *meant = mk_variable_find_foreign(name);
    if (!meant || !mk_variable_find(mk_str_c(meant)))
        meant = mk_variable_find_nearest(name);
    mk_buf_addf(error, "requests have no variable \"%.*s\"", MK_STR_ARG(name));
    if (meant)
        mk_buf_addf(error, "; did you mean \"%s\"?", meant);
    return -EINVAL;
}

static int parse_piece(struct mk_text_piece *piece, struct mk_str literal, struct mk_str name, struct mk_arena *arena,
                       struct mk_buf *error)
{
    piece->literal = mk_arena_dup(arena, literal);
    if (!piece->literal.p)
        return -ENOMEM;
    if (mk_str_has_control(literal))
        return report_control(error);
    if (!name.p)
        return 0;
    piece->variable = mk_variable_find(name);
    if (!piece->variable || name.len > MK_VARIABLE_NAME_BYTES_MAX)
        return report_variable(name, error);
    return mk_variable_parse_arg(piece->variable->name, piece->variable->arg, name, arena, &piece->arg, error);
}

int mk_text_parse(struct mk_str text, const struct mk_text_piece **ret, struct mk_arena *arena, struct mk_buf *error)
{
    struct mk_text_piece *previous = NULL;
    struct mk_str literal, name;
    int r;
    *ret = NULL;
    while ((r = mk_variable_next(&text, &literal, &name, error)) > 0) {
        struct mk_text_piece *piece = mk_arena_zalloc(arena, sizeof(*piece));
        int err = piece ? parse_piece(piece, literal, name, arena, error) : -ENOMEM;
        if (err < 0)
            return err;
        if (previous)
            previous->next = piece;
        else
            *ret = piece;
        previous = piece;
    }
    return r;
}

int mk_text_write(const struct mk_text_piece *text, struct mk_request *req, struct mk_buf *out)
{
    size_t start = out->len;
    for (; text; text = text->next) {
        mk_buf_adds(out, text->literal);
        if (text->variable)
            mk_buf_adds(out, text->variable->get(req, text->arg));
    }
    return mk_str_has_control(mk_str(out->data + start, out->len - start)) ? -EINVAL : 0;
}
