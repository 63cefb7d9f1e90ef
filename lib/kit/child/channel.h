// SPDX-License-Identifier: Apache-2.0
/*
 * The connection of a thread to the starter, and its messages.
 */
#ifndef MK_KIT_CHILD_CHANNEL_H
#define MK_KIT_CHILD_CHANNEL_H

#include "message.h"

/* The states of a child, in mk_child.state. */
enum mk__child_state {
    MK__CHILD_CLOSED,
    MK__CHILD_QUEUED, /* its message waits for the channel */
    MK__CHILD_ASKED,  /* the starter has the message */
    MK__CHILD_RUNNING,
    MK__CHILD_ENDED,
};

/*
 * Has the children sent that are QUEUED, at the end of the turn or once there is a connection; makes one if there is
 * none.
 */
void mk__channel_flush(struct mk_child_channel *channel);
/* Adds a child after the others and gives it a number. Returns 0 or -ENOBUFS. */
int mk__channel_add(struct mk_child_channel *channel, struct mk_child *child);
/* Takes a child off its channel. */
void mk__channel_remove(struct mk_child_channel *channel, struct mk_child *child);
/* Has the starter end a child and all that descends from it: SIGTERM, and SIGKILL after a time. */
void mk__channel_send_stop(struct mk_child_channel *channel, uint32_t id, uint32_t grace_ms);
/* Tells the starter that a child which has ended is closed. */
void mk__channel_send_reap(struct mk_child_channel *channel, uint32_t id);
/* The starter has not answered in time. */
void mk__channel_drop_starter(struct mk_child_channel *channel);

struct mk_loop *mk__channel_loop(const struct mk_child_channel *channel);

/* ── child.c ── */

/* A message of the starter about the child. Takes `pidfd` over, -1: none. */
void mk__child_take_started(struct mk_child *child, const struct mk__message *m, int pidfd);
void mk__child_take_exited(struct mk_child *child, int status);
/* Its start has failed. */
void mk__child_fail(struct mk_child *child, int err, enum mk_child_step step);
/*
 * The starter has ended, and with it the kernel ends the child, which runs: its end is awaited by `event`. If that
 * cannot be, the descriptor of the event is -1, and mk__child_take_exited() must follow.
 */
void mk__child_lose_starter(struct mk_child *child);
/* Frees what the child holds, and takes it off its channel. */
void mk__child_release(struct mk_child *child);

#endif
