// SPDX-License-Identifier: Apache-2.0
/*
 * [SPOOL]: the budget of the process for bodies that wait, whichever plugins have them. It lasts over reloads. A reload
 * that names another folder makes another budget; the former one lasts as long as a generation that holds it.
 */
#ifndef MK_SERVER_SPOOLS_H
#define MK_SERVER_SPOOLS_H

#include "server/generation/generation.h"

extern const struct mk_conf_section mk__section_spool;

/* The generation is in use: its limits count. Any thread. */
MK_COLD void mk__spools_serve(const struct mk_generation *g);
/* Ends what the generation holds, after the stops of its plugins. */
void mk__spools_put(struct mk_generation *g);

#endif
