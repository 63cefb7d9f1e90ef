// SPDX-License-Identifier: Apache-2.0
/*
 * Keys of [SERVER] for a process that is the server's: in the text of a program that has a server in it they have no
 * effect.
 */
#ifndef MK_SERVER_PROCESS_KEYS_H
#define MK_SERVER_PROCESS_KEYS_H

#include "conf/conf.h"
#include "server/generation/settings.h"

/* Warns of each of them that is set, with its place, and says what the program does in its place. */
MK_COLD void mk__process_keys_warn(struct mk__conf *conf, const struct mk__conf_set *set,
                                   const struct mk__settings *settings);

#endif
