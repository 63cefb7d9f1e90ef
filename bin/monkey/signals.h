// SPDX-License-Identifier: Apache-2.0
/*
 * Signals of the running server.
 */
#ifndef MONKEY_SIGNALS_H
#define MONKEY_SIGNALS_H

#include <monkey/monkey.h>

/*
 * Resets the disposition of all signals that the program uses, and unblocks all signals: the parent (nohup, a shell for
 * background jobs, some service managers) may have ignored or blocked them. Call first in main(), before any thread.
 */
void signals_reset(void);
/* Blocks the signals that signals_serve() waits for. Call before any thread exists. */
void signals_block(void);
/* Lets plugins give commands that are otherwise given by signals. Call before the start. */
void signals_take_commands(struct mk_server *server);
/* Acts on signals until one stops the server; a second one stops it at once. */
void signals_serve(struct mk_server *server);

#endif
