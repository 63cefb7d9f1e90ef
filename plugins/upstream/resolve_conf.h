// SPDX-License-Identifier: Apache-2.0
/*
 * Values of [UPSTREAM] about the names of servers.
 */
#ifndef UPSTREAM_RESOLVE_CONF_H
#define UPSTREAM_RESOLVE_CONF_H

#include "lookup.h"

#include <monkey/conf.h>

/* Parses a line `NameServer` into struct lookup_servers (mk_conf_parse_fn). */
int resolve_parse_name_server(const struct mk_conf_value *value, void *field, struct mk_arena *arena,
                              struct mk_buf *error);

/*
 * Parses the name of a line `Server srv:NAME`, of which `text` is the part after the colon. Returns 0, -ENOMEM, or
 * -EINVAL with a sentence in `error`.
 */
int resolve_parse_srv(struct mk_str text, const struct mk_dial_target **ret, struct mk_arena *arena,
                      struct mk_buf *error);

#endif
