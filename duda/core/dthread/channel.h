// SPDX-License-Identifier: Apache-2.0
/*
 * Channels between the dthreads of a worker (<duda/dthread.h>). A value goes from the sender to a receiver that waits,
 * into the buffer, or waits with its sender:
 *
 *     senders that wait ─► buffer, up to `size` ─► receivers that wait        one of the three at most is between them
 */
#ifndef DUDA_CORE_DTHREAD_CHANNEL_H
#define DUDA_CORE_DTHREAD_CHANNEL_H

#include <duda/dthread.h>

struct dthread;
struct service_worker;

/* Returns a channel of the worker, or NULL with -EINVAL or -ENOMEM in *ret_err. */
struct duda_channel *channel_new(struct service_worker *w, unsigned size, int *ret_err);
/* Closes and frees it. */
void channel_free(struct duda_channel *c);
/* Returns whether it belongs to the worker. */
bool channel_is_of(const struct duda_channel *c, const struct service_worker *w);
void channel_close(struct duda_channel *c);

/* Send or receive without waiting. Return 0, -EPIPE or -EAGAIN. */
int channel_try_send(struct duda_channel *c, void *value);
int channel_try_receive(struct duda_channel *c, void **ret);
/* The same with waiting, in the dthread `d`; the timeout is not 0. */
int channel_send(struct dthread *d, struct duda_channel *c, void *value, uint32_t timeout_ms);
int channel_receive(struct dthread *d, struct duda_channel *c, void **ret, uint32_t timeout_ms);
/* Receive from the first of `n` channels. Return its index (NULL in *ret: it is closed) or -errno. */
int channel_try_select(struct duda_channel *const *channels, unsigned n, void **ret);
int channel_select(struct dthread *d, struct duda_channel *const *channels, unsigned n, void **ret,
                   uint32_t timeout_ms);

#endif
