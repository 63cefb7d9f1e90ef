// SPDX-License-Identifier: Apache-2.0
/*
 * The parsers of User and Group, and what is wrong with them for this process.
 */
#ifndef MK_SERVER_USER_H
#define MK_SERVER_USER_H

#include "server/settings.h"

int mk__user_parse(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error);
int mk__user_parse_group(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error);

/* Can this process be who it shall be? For the section's check. */
void mk__user_check(const struct mk_conf_check *check, const struct mk__settings *s);

#endif
