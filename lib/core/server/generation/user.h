// SPDX-License-Identifier: Apache-2.0
/*
 * Parses User and Group.
 */
#ifndef MK_SERVER_USER_H
#define MK_SERVER_USER_H

#include <monkey/conf.h>

/* A user or a group; name.p is NULL if none is configured. */
struct mk__user {
    struct mk_str name;
    uint32_t id, group; /* `group` is the user's primary group */
};

/* The parsers of the keys; `field` is a struct mk__user. Return 0, -EINVAL (the reason is in `error`) or -ENOMEM. */
MK_COLD int mk__user_parse(const struct mk_conf_value *value, void *field, struct mk_arena *arena,
                           struct mk_buf *error);
MK_COLD int mk__user_parse_group(const struct mk_conf_value *value, void *field, struct mk_arena *arena,
                                 struct mk_buf *error);

#endif
