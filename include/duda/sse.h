// SPDX-License-Identifier: Apache-2.0
/*
 * The object `sse`: server-sent events for all subscribers of a channel, in all workers (docs/reference/duda/sse.md).
 *
 *     static void follow(duda_request_t *dr)
 *     {
 *         response->sse_begin(dr, 15);
 *         sse->subscribe(dr, "prices");
 *     }
 *
 *     static void change_price(duda_request_t *dr)
 *     {
 *         sse->publish("prices", "price", NULL, "%s", request->body(dr, NULL));
 *         ...
 *     }
 *
 * A channel is a name of 1 to DUDA_SSE_NAME_BYTES bytes. It exists while it has subscribers; those of another service,
 * and of another version of the service after a reload, have their own channels. A request is a subscriber until it
 * ends: its client leaves, or the service ends the response.
 *
 * Events reach each subscriber in the order in which one thread has published them, after what response->sse_send()
 * has sent to it before. A client that reads so slowly that more than DUDA_SSE_QUEUE_BYTES would wait for it has its
 * response cut: it is no subscriber any more, and what waits is freed. request->on_leave() is called when the
 * connection ends, which takes a Timeout if the client does not read at all. A browser connects again with the ID of
 * the last event that it has (request->last_event_id()).
 */
#ifndef DUDA_SSE_H
#define DUDA_SSE_H

#include "types.h"

enum {
    DUDA_SSE_NAME_BYTES = 128,
    DUDA_SSE_CHANNELS_MAX = 16,     /* of a request */
    DUDA_SSE_EVENT_BYTES = 1 << 20, /* of a published event, as it is sent */
    DUDA_SSE_QUEUE_BYTES = 1 << 20, /* that wait for one subscriber */
};

struct duda_api_sse {
    /*
     * Makes a request a subscriber of a channel, after response->sse_begin(). Returns 0, also if it is one already;
     * -EINVAL (the name; sse_begin() was not called), -ENOSPC (it has DUDA_SSE_CHANNELS_MAX channels), -ENOMEM, and
     * -EALREADY, -ESTALE or -EPERM as functions of `response`. Worker.
     */
    int (*subscribe)(duda_request_t *dr, const char *channel);
    /* The end of subscribe(). Returns 0, or -ENOENT: it is no subscriber. Other errors as above. Worker. */
    int (*unsubscribe)(duda_request_t *dr, const char *channel);
    /*
     * Sends an event to all subscribers of a channel; `event` (its type) and `id` may be NULL, and have no line ends.
     * The formatted text may have any number of lines. The event is formatted once. Subscribers of the calling worker
     * get it after the callback, too. Returns 0, also if there is no subscriber; or
     *
     *     -EINVAL     the name, the format, or a line end
     *     -EMSGSIZE   the event has more than DUDA_SSE_EVENT_BYTES
     *     -EAGAIN     64 MB of the service's events wait to be passed on; or 65,536 calls wait for a worker, whose
     *                 subscribers do not get it
     *     -ENOMEM     some workers may have got it
     *     -EPERM      not in a callback or a thread of the service
     *
     * All but -EAGAIN and -ENOMEM are logged. Any thread.
     */
    int (*publish)(const char *channel, const char *event, const char *id, const char *format, ...) DUDA_PRINTF(4, 5);
    /* Returns how many subscribers a channel has in all workers. Any thread. */
    size_t (*count)(const char *channel);
    /*
     * Ends the responses of all subscribers of a channel, after the events that were published before; also of those
     * that subscribe before the call has reached their worker. A browser connects again, unless it gets 204 then.
     * Returns 0, also if there is no subscriber; -EINVAL (the name; logged); or -EAGAIN, -ENOMEM and -EPERM as
     * publish(): after the first two call it again. Any thread.
     */
    int (*close_channel)(const char *channel);
};

DUDA_OBJECT(struct duda_api_sse, sse)

#endif
