// SPDX-License-Identifier: Apache-2.0
/*
 * Makes and ends a generation (server/generation/generation.h). One thread at a time calls plugins: a load or a stop
 * waits for another one (mk__module_lock_hooks()). The main thread loads; that thread or the control thread stops and
 * frees.
 */
#ifndef MK_SERVER_GENERATION_LOAD_H
#define MK_SERVER_GENERATION_LOAD_H

#include "server/generation/generation.h"

/* Reads and prepares everything. Returns 0, -EINVAL (see the problems) or -ENOMEM. To be released in each case. */
MK_COLD int mk__generation_load(struct mk_generation *g, const struct mk__generation_source *source);
/* Stops its plugins. A generation that could not be used is kept after this, for its problems alone. */
MK_COLD void mk__generation_stop(struct mk_generation *g);
/* Does the same, unless a load or a stop is under way. Returns whether the plugins are stopped now. */
MK_COLD bool mk__generation_try_stop(struct mk_generation *g);
/* Stops the plugins, and frees all but the struct. */
MK_COLD void mk__generation_release(struct mk_generation *g);
/* Frees the generation, if there is one, and sets it to NULL. No other reference may be left. */
MK_COLD void mk__generation_free(struct mk_generation **g);

#endif
