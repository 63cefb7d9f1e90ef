// SPDX-License-Identifier: Apache-2.0
/*
 * Files of a page that are part of a plugin, which CMake embeds: mk_embed_files() of cmake/embedded.cmake. In the kit:
 * plugins link -lmonkey-kit.
 */
#ifndef MONKEY_EMBEDDED_H
#define MONKEY_EMBEDDED_H

#include "../conf.h"
#include "../request.h"

MK_C_BEGIN

struct mk_embedded_file {
    struct mk_str name; /* below the path of the page; empty: the page itself */
    struct mk_str type, tag;
    const char *begin, *end;
};

/* Returns the file of that name in a table that ends with a row without `begin`; NULL: there is none. */
MK_API const struct mk_embedded_file *mk_embedded_find(const struct mk_embedded_file *files, struct mk_str name);
/*
 * Responds with the file, and ends the response: 200, 304 for its entity tag, or 503 without memory. Its policy allows
 * what comes from the same origin only, and no inline script or style.
 */
MK_API void mk_embedded_send(struct mk_request *req, const struct mk_embedded_file *file);

/*
 * Parses the path of a page into a struct mk_str: an mk_conf_parse_fn. It starts with a slash, does not end with one,
 * and has only characters that need no encoding.
 */
MK_API int mk_embedded_parse_path(const struct mk_conf_value *value, void *field, struct mk_arena *arena,
                                  struct mk_buf *error);

MK_C_END

#endif
