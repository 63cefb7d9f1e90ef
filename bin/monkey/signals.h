// SPDX-License-Identifier: Apache-2.0
/*
 * Signals of a server that runs: what each means, until one means the end.
 */
#ifndef MONKEY_SIGNALS_H
#define MONKEY_SIGNALS_H

#include <monkey/monkey.h>

/*
 * Sets the disposition of all signals that the program uses, and unblocks all signals. A parent may have ignored or
 * blocked them: nohup, a shell for its background jobs, some service managers. First in main(), without threads.
 */
void signals_reset(void);
/* Before there are threads. */
void signals_block(void);
/* Acts on signals until one means the end; then stops the server, at once with a second one. */
void signals_serve(struct mk_server *server);

#endif
