// SPDX-License-Identifier: Apache-2.0
/*
 * Parses and checks User and Group.
 */
#ifndef MK_SERVER_USER_H
#define MK_SERVER_USER_H

#include "server/settings.h"

/* The parsers of the keys; `field` is a struct mk__user. Return 0, -EINVAL (the reason is in `error`) or -ENOMEM. */
int mk__user_parse(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error);
int mk__user_parse_group(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error);

/* Reports if this process cannot change to User and Group. For the section's check. */
void mk__user_check(const struct mk_conf_check *check, const struct mk__settings *s);

#endif
