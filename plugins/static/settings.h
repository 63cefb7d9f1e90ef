// SPDX-License-Identifier: Apache-2.0
/* What holds for a host: its own word where it has one, and the server's otherwise. Lean builds have the latter only.
 */
#ifndef STATIC_SETTINGS_H
#define STATIC_SETTINGS_H

#include "static.h"

#ifdef MK_LEAN
static inline const struct static_settings *settings_merge(struct static_site *site,
                                                           const struct static_settings *server)
{
    (void)site;
    return server;
}
#else

/* Lives as long as the site, whose `host` is set. */
const struct static_settings *settings_merge(struct static_site *site, const struct static_settings *server);

#endif /* MK_LEAN */
#endif
