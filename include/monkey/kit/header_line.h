// SPDX-License-Identifier: Apache-2.0
/*
 * Headers of responses, as lines `KEY NAME VALUE` of a section write them. In the kit: plugins link -lmonkey-kit.
 */
#ifndef MONKEY_HEADER_LINE_H
#define MONKEY_HEADER_LINE_H

#include "../conf.h"
#include "../request.h"

MK_C_BEGIN

/*
 * Reads a line of the key `key`, as messages name it: `NAME VALUE` or, without `has_value`, `NAME`. Copies both; they
 * can be added to a response then (mk_response_header_ref()).
 * Returns 0, -ENOMEM, or -EINVAL with a sentence in `error`: among others for what only the server sets, such as
 * Content-Length, Connection and Upgrade.
 */
MK_API int mk_header_line_parse(const struct mk_conf_value *value, const char *key, bool has_value,
                                struct mk_header_field *ret, struct mk_arena *arena, struct mk_buf *error);

/*
 * Warns of what is sent as it is, though it may be meant otherwise: variables and single quotes. `offset`, `nth`: as
 * mk_conf_warn_nth().
 */
MK_API void mk_header_line_check(const struct mk_conf_check *check, size_t offset, unsigned nth, struct mk_str value);

MK_C_END

#endif
