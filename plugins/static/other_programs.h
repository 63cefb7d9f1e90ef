// SPDX-License-Identifier: Apache-2.0
/*
 * Warns of programs whose source a host sends, because only another host runs them, or none does.
 */
#ifndef STATIC_OTHER_PROGRAMS_H
#define STATIC_OTHER_PROGRAMS_H

#include <monkey/plugin.h>

/* Warns for all hosts of the generation, whose sites are open. In generation_check. */
void mk__static_other_programs_check(struct mk_generation *g);

#endif
