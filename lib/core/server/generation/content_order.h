// SPDX-License-Identifier: Apache-2.0
/*
 * Sections that answer requests (MK_CONF_SERVES) by a key `Match`, in the order in which a host asks them: plugins in
 * their order, the sections of a plugin in that of `sections`.
 */
#ifndef MK_SERVER_CONTENT_ORDER_H
#define MK_SERVER_CONTENT_ORDER_H

#include "server/generation/generation.h"

/*
 * Warns of sections that no request gets to, because one before has all paths of their Match
 * (mk_inspect_hooks.takes_section). Once all plugins have checked the generation.
 */
MK_COLD void mk__content_order_check(struct mk_generation *g);

/* Returns the key Match of a section that answers requests by it; NULL: it does not. */
MK_COLD const struct mk_conf_key *mk__content_order_match_key(const struct mk_conf_section *section);

#endif
