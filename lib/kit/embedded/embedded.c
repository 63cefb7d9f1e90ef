// SPDX-License-Identifier: Apache-2.0
/*
 * Sends files that are part of a plugin, and reads the path of their page (<monkey/kit/embedded.h>).
 */
#include <monkey/kit/embedded.h>

#include <errno.h>

const struct mk_embedded_file *mk_embedded_find(const struct mk_embedded_file *files, struct mk_str name)
{
    while (files->begin && !mk_str_eq(files->name, name))
        files++;
    return files->begin ? files : NULL;
}

static int add_headers(struct mk_request *req, const struct mk_embedded_file *file)
{
    const struct {
        struct mk_str name, value;
    } rows[] = {
        {MK_STR("Content-Type"), file->type},
        {MK_STR("Cache-Control"), MK_STR("no-cache")},
        {MK_STR("X-Content-Type-Options"), MK_STR("nosniff")},
        {MK_STR("ETag"), file->tag},
        {MK_STR("Content-Security-Policy"),
         MK_STR("default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; "
                "base-uri 'none'; form-action 'none'; frame-ancestors 'none'")},
    };
    int err = 0;
    for (unsigned i = 0; err == 0 && i < MK_COUNT_OF(rows); i++)
        err = mk_response_header_ref(req, rows[i].name, rows[i].value);
    return err;
}

void mk_embedded_send(struct mk_request *req, const struct mk_embedded_file *file)
{
    struct mk_str tag = mk_request_header_by_name(req, MK_STR("If-None-Match"));
    int err = add_headers(req, file);
    if (err == 0 && mk_str_eq(tag, file->tag))
        mk_response_set_status(req, 304);
    else if (err == 0)
        err = mk_response_write_ref(req, mk_str(file->begin, (size_t)(file->end - file->begin)));
    if (err < 0 && err != -EALREADY)
        mk_response_error(req, 503);
    else
        mk_response_end(req);
}

int mk_embedded_parse_path(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    struct mk_str *path = field, text = value->text;
    *path = MK_STR("");
    bool fits = value->n == 1 && text.len > 1 && text.p[0] == '/' && text.p[text.len - 1] != '/';
    if (!fits || !mk_str_is_visible(text, "?#%\\") || memmem(text.p, text.len, "//", 2) ||
        memmem(text.p, text.len, "/.", 2))
        return mk_conf_fail(error, "one path is needed, which starts with a slash, does not end with one, and has only "
                                   "characters that need no encoding");
    *path = mk_arena_dup(arena, text);
    return path->p ? 0 : -ENOMEM;
}
