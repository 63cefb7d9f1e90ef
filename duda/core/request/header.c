// SPDX-License-Identifier: Apache-2.0
/*
 * Headers of responses (header.h).
 */
#include "request/header.h"

#include "request/request.h"

#include <errno.h>

enum { EXTENSION_BYTES_MAX = 32 };

/* ── headers that the server sets ── */

static int set_length(struct duda_request *dr, struct mk_str value)
{
    uint64_t bytes;
    if (!mk_str_u64(value, INT64_MAX, &bytes))
        return -EINVAL;
    dr->output.length = (int64_t)bytes;
    dr->output.is_fixed = true;
    return 0;
}

static int set_connection(struct duda_request *dr, struct mk_str value)
{
    if (mk_str_ieq(value, MK_STR("close")))
        mk_response_close_connection(dr->req);
    else if (!mk_str_ieq(value, MK_STR("keep-alive")))
        return -EINVAL;
    return 0;
}

static const struct reserved {
    struct mk_str name;
    int (*set)(struct duda_request *dr, struct mk_str value);
} reserved[] = {
    {MK_STR_INIT("Content-Length"), set_length},
    {MK_STR_INIT("Connection"), set_connection},
};

static int set_reserved(struct duda_request *dr, struct mk_str name, struct mk_str value)
{
    for (size_t i = 0; i < MK_COUNT_OF(reserved); i++)
        if (mk_str_ieq(name, reserved[i].name))
            return reserved[i].set(dr, value);
    return -EINVAL;
}

/* ── all headers ── */

int header_add(struct duda_request *dr, struct mk_str name, struct mk_str value)
{
    value = mk_str_trim(value);
    if (mk_response_header_reserved(name))
        return set_reserved(dr, name, value);
    return mk_response_header(dr->req, name, value);
}

int header_add_row(struct duda_request *dr, struct mk_str row)
{
    struct mk_str copy = mk_arena_dup(mk_request_arena(dr->req), mk_str_strip_end(row, "\r\n"));
    const char *colon = copy.p ? memchr(copy.p, ':', copy.len) : NULL;
    if (!colon)
        return copy.p ? -EINVAL : -ENOMEM;
    size_t name_len = (size_t)(colon - copy.p);
    struct mk_str name = mk_str(copy.p, name_len), value = mk_str(colon + 1, copy.len - name_len - 1);
    if (mk_response_header_reserved(name))
        return set_reserved(dr, name, mk_str_trim(value));
    return mk_response_header_ref(dr->req, name, mk_str_trim(value));
}

int header_replace(struct duda_request *dr, struct mk_str name, struct mk_str value)
{
    mk_response_header_remove(dr->req, name);
    return header_add(dr, name, value);
}

int header_set_type(struct duda_request *dr, struct mk_str extension)
{
    char path[EXTENSION_BYTES_MAX + 2] = "x.";
    if (extension.len && *extension.p == '.')
        extension = mk_str_after(extension, 1);
    if (extension.len == 0 || extension.len > EXTENSION_BYTES_MAX)
        return -ENOENT;
    memcpy(path + 2, extension.p, extension.len);
    struct mk_str type = mk_request_mime(dr->req, mk_str(path, 2 + extension.len));
    if (!type.p || type.p == mk_request_mime(dr->req, MK_STR("x")).p) /* the type of files without an extension */
        return -ENOENT;
    return header_replace(dr, MK_STR("Content-Type"), type);
}

/* ── headers that outlive a body ── */

static bool describes_body(struct mk_str name)
{
    static const struct mk_str names[] = {MK_STR("ETag"), MK_STR("Last-Modified"), MK_STR("Accept-Ranges"),
                                          MK_STR("Location")};
    struct mk_str prefix = MK_STR("Content-");
    if (mk_str_istarts(name, prefix) && name.len > prefix.len)
        return true;
    return mk_str_is_any(name, names, MK_COUNT_OF(names));
}

void header_save(const struct duda_request *dr, struct header_list *ret)
{
    struct mk_str name, value;
    ret->n = 0;
    for (unsigned i = 0; ret->n < HEADERS_MAX && mk_response_header_at(dr->req, i, &name, &value); i++) {
        if (describes_body(name))
            continue;
        ret->items[ret->n].name = name;
        ret->items[ret->n++].value = value;
    }
}

void header_restore(struct duda_request *dr, const struct header_list *list)
{
    for (unsigned i = 0; i < list->n; i++)
        mk_response_header_ref(dr->req, list->items[i].name, list->items[i].value);
}
