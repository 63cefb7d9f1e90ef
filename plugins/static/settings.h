// SPDX-License-Identifier: Apache-2.0
/* The settings of a host: its own, else the server's. Small builds have the server's only. */
#ifndef STATIC_SETTINGS_H
#define STATIC_SETTINGS_H

#include "static.h"

/* The names of a host's values: "Server" (as the server), then those of the server. They end with NULL. */
extern const char *const settings_switch_names[];
extern const char *const settings_symlink_names[];

/* Returns the merged settings of a site whose `host` is set. They live as long as the site. */
const struct static_settings *settings_merge(struct static_site *site, const struct static_settings *server);

#endif
