// SPDX-License-Identifier: Apache-2.0
/*
 * What the server as a whole tells of itself.
 */
#ifndef CHEETAH_INFO_H
#define CHEETAH_INFO_H

#include "client.h"

/* Adds the members of `status` that need no other thread. */
void info_add_status(struct client *c);

#endif
