// SPDX-License-Identifier: Apache-2.0
/*
 * Headers of requests by configuration (fields.h).
 */
#include "fields.h"

#include "headers.h"

#include <monkey/base/buf.h>
#include <monkey/request.h>

#include <errno.h>
#include <strings.h>

/* ── names ── */

static const struct field *find_name(const struct field_list *list, struct mk_str name)
{
    const struct field *f = list->first;
    while (f && !mk_header_same_name(f->name, name))
        f = f->next;
    return f;
}

bool fields_set(const struct field_changes *changes, struct mk_str name)
{
    return find_name(&changes->set, name);
}

bool fields_replace(const struct field_changes *changes, struct mk_str name)
{
    return find_name(&changes->set, name) || find_name(&changes->remove, name);
}

bool fields_are_ambiguous(const struct field_changes *changes, struct mk_str name)
{
    const struct field *f = find_name(&changes->set, name);
    return f && !mk_str_ieq(f->name, name);
}

static bool starts_with(struct mk_str name, struct mk_str prefix)
{
    return name.len >= prefix.len && strncasecmp(name.p, prefix.p, prefix.len) == 0;
}

/* Returns why a name cannot be used; NULL: it can. */
static const char *refuse_name(struct mk_str name)
{
    static const struct {
        struct mk_str prefix;
        const char *sentence;
    } rows[] = {
        {MK_STR_INIT("host"), "HostHeader chooses the Host that the backend gets"},
        {MK_STR_INIT("x-forwarded-"), "this header tells the backend of the client: Forwarded chooses it"},
        {MK_STR_INIT("forwarded"), "this header tells the backend of the client: Forwarded chooses it"},
        {MK_STR_INIT("x-real-ip"), "this header tells the backend of the client: Forwarded chooses it"},
    };
    if (!mk_header_is_plain(name))
        return "the name of a header has letters, digits and dashes only";
    if (starts_with(name, MK_STR("sec-websocket-")))
        return "this header belongs to the handshake of WebSocket";
    if (header_is_passed(header_of_request(name)))
        return NULL;
    for (size_t i = 0; i < MK_COUNT_OF(rows); i++)
        if (starts_with(name, rows[i].prefix))
            return rows[i].sentence;
    return "the proxy itself decides about this header";
}

/* Appends a header to a list. Returns 0, -ENOMEM, or -EINVAL with a sentence in `error`. */
static int add_field(struct field_list *list, struct mk_str name, struct mk_arena *arena, struct field **ret,
                     struct mk_buf *error)
{
    const char *refusal = refuse_name(name);
    if (refusal)
        return mk_conf_fail(error, refusal);
    if (find_name(list, name))
        return mk_conf_fail(error, "a line before this one has the same name");
    struct field *f = mk_arena_zalloc(arena, sizeof(*f));
    if (!f)
        return -ENOMEM;
    f->name = mk_arena_dup(arena, name);
    if (!list->last)
        list->last = &list->first;
    *list->last = f;
    list->last = &f->next;
    *ret = f;
    return f->name.p ? 0 : -ENOMEM;
}

/* ── lines ── */

int fields_parse_set(const struct mk_conf_value *value, void *list, struct mk_arena *arena, struct mk_buf *error)
{
    struct field *f;
    if (value->n < 2)
        return mk_conf_fail(error, "a header needs a name and a value; RequestRemove removes one");
    struct mk_str name = value->words[0];
    int err = add_field(list, name, arena, &f, error);
    struct mk_str text = mk_str_trim(mk_str(value->text.p + name.len, value->text.len - name.len));
    return err == 0 ? mk_text_parse(text, &f->value, arena, error) : err;
}

int fields_parse_remove(const struct mk_conf_value *value, void *list, struct mk_arena *arena, struct mk_buf *error)
{
    struct field *f;
    if (value->n != 1)
        return mk_conf_fail(error, "it takes the name of one header");
    return add_field(list, value->words[0], arena, &f, error);
}

/* ── requests ── */

/* Writes a line, unless the value is empty. */
static int write_field(const struct field *f, struct mk_request *req, struct mk_buf *out)
{
    size_t start = out->len;
    mk_buf_adds(out, f->name);
    mk_buf_adds(out, MK_STR(": "));
    size_t value = out->len;
    int err = mk_text_write(f->value, req, out);
    if (err < 0)
        return err;
    struct mk_str written = mk_str(out->data + value, out->len - value);
    if (mk_str_trim(written).len)
        mk_buf_adds(out, MK_STR("\r\n"));
    else
        out->len = start;
    return 0;
}

int fields_write(const struct field_changes *changes, struct mk_request *req, struct mk_buf *out)
{
    int err = 0;
    for (const struct field *f = changes->set.first; f && err == 0; f = f->next)
        err = write_field(f, req, out);
    return err;
}
