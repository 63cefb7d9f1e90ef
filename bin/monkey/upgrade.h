// SPDX-License-Identifier: Apache-2.0
/*
 * Another program in our place: it serves before we drain.
 */
#ifndef MONKEY_UPGRADE_H
#define MONKEY_UPGRADE_H

#include <monkey/monkey.h>

/*
 * Starts the program that lies at our path by now with our sockets, and waits until it serves; under a supervisor that
 * has been done already. True: it serves, and this server shall stop. False: it does not, and the log says why.
 */
bool upgrade_run(struct mk_server *server);

#endif
