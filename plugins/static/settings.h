// SPDX-License-Identifier: Apache-2.0
/*
 * The directives of [SERVER], [HOST], [ERROR_PAGES] and [ALIAS].
 */
#ifndef STATIC_SETTINGS_H
#define STATIC_SETTINGS_H

#include "site.h"

/* The sections for struct mk_plugin. */
enum { SETTINGS_SERVER, SETTINGS_HOST, SETTINGS_ERROR_PAGES, SETTINGS_ALIAS };
extern const struct mk_conf_section mk__static_settings_sections[];

/* Returns the settings of a site whose `host` is set: the host's, else the server's. They live as long as the site. */
const struct static_settings *mk__static_settings_merge(struct static_site *site, const struct static_settings *server);

#endif
