// SPDX-License-Identifier: Apache-2.0
/* What holds for a host: its own word where it has one, and the server's otherwise. Lean builds have the latter only.
 */
#ifndef STATIC_SETTINGS_H
#define STATIC_SETTINGS_H

#include "static.h"

/* The values of a host: those of the server, behind one for "as the server". End with NULL. */
extern const char *const settings_switch_names[];
extern const char *const settings_symlink_names[];

/* Lives as long as the site, whose `host` is set. */
const struct static_settings *settings_merge(struct static_site *site, const struct static_settings *server);

#endif
