// SPDX-License-Identifier: Apache-2.0
/*
 * What a section of a plugin says of paths with a slash within a segment ("%2F"): enum mk_encoded_slash, which the hook
 * accepts_encoded_slash returns (<monkey/hooks.h>). In the kit: plugins link -lmonkey-kit.
 */
#ifndef MONKEY_ENCODED_SLASH_H
#define MONKEY_ENCODED_SLASH_H

#include "../conf.h"
#include "../request.h"

MK_C_BEGIN

extern const char *const mk_encoded_slash_names[];

/* The row of the key EncodedSlash, for an int of `owner`. */
#define MK_ENCODED_SLASH_KEY(owner, field) \
    MK_CONF_KEY_ENUM( \
        owner, field, "EncodedSlash", "Refuse", \
        "What becomes of a path with a slash within a segment, as `%2F`: it is 404 (`Refuse`), the slash " \
        "stays encoded (`Keep`), or is as any other one (`Decode`). With `Keep` rules for `/a/` do not " \
        "match `/a%2Fb`: the application must not treat both alike where that matters. With `Decode` " \
        "they do. A path with `.` or `..` next to such a slash is 404 always.", \
        .names = mk_encoded_slash_names)

MK_C_END

#endif
