// SPDX-License-Identifier: Apache-2.0
/*
 * The listening sockets of plugins, for the handover to another process (server/listen/handover.c).
 */
#ifndef MK_SERVER_PLUGIN_SOCKETS_H
#define MK_SERVER_PLUGIN_SOCKETS_H

#include <monkey/status.h>

#include <stdbool.h>

/* Returns whether a plugin has taken this socket, which the process has inherited. */
MK_COLD bool mk__plugin_sockets_have(int fd);
/* Calls `fn` for each socket that plugins keep. */
void mk__plugin_sockets_each(void (*fn)(int fd, bool own, void *ctx), void *ctx);
/* This process serves: those that plugins have taken are its own from now on. */
MK_COLD void mk__plugin_sockets_serve(void);
/* Another process has them now. */
MK_COLD void mk__plugin_sockets_hand_over(void);

#endif
