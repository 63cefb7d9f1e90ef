// SPDX-License-Identifier: Apache-2.0
/*
 * The original API: objects that this version does not offer. Their functions do nothing and return an error.
 */
#include "old.h"

#include "current.h"
#include "message.h"
#include "service.h"

#include <stdatomic.h>

enum absent { SESSION = 1, DTHREAD = 2 };

static void tell(enum absent object)
{
    struct service *s = current.service;
    if (s && !(atomic_fetch_or(&s->old.told, object) & object))
        message_log_of(s, MK_LOG_ERROR, "this version does not have the object \"%s\": its functions return errors",
                       object == SESSION ? "session" : "dthread");
}

/* ── session ── */

static int init_sessions(void)
{
    tell(SESSION);
    return -1;
}

static int create_session(duda_request_t *dr, const char *name, const char *value, int expires)
{
    (void)dr, (void)name, (void)value, (void)expires;
    tell(SESSION);
    return -1;
}

static int find_session(duda_request_t *dr, const char *name)
{
    (void)dr, (void)name;
    tell(SESSION);
    return -1;
}

static void *get_session(duda_request_t *dr, const char *name)
{
    (void)dr, (void)name;
    tell(SESSION);
    return NULL;
}

const struct duda_old_session old_session = {
    .init = init_sessions,
    .create = create_session,
    .destroy = find_session,
    .get = get_session,
    .isset = find_session,
};

/* ── dthread ── */

static int create_thread(void (*fn)(void *), void *data)
{
    (void)fn, (void)data;
    tell(DTHREAD);
    return -1;
}

static int get_status(int id)
{
    (void)id;
    tell(DTHREAD);
    return DTHREAD_DEAD;
}

static void yield(void)
{
    tell(DTHREAD);
}

static void resume(int id)
{
    (void)id;
    tell(DTHREAD);
}

static int get_running(void)
{
    tell(DTHREAD);
    return -1;
}

static duda_dthread_channel_t *create_channel(int size)
{
    (void)size;
    tell(DTHREAD);
    return NULL;
}

static void end_channel(duda_dthread_channel_t *channel)
{
    (void)channel;
    tell(DTHREAD);
}

static int get_end(duda_dthread_channel_t *channel)
{
    (void)channel;
    tell(DTHREAD);
    return -1;
}

static void set_end(duda_dthread_channel_t *channel, int id)
{
    (void)channel, (void)id;
    tell(DTHREAD);
}

static int is_done(duda_dthread_channel_t *channel)
{
    (void)channel;
    tell(DTHREAD);
    return 1;
}

static int send_data(duda_dthread_channel_t *channel, void *data)
{
    (void)channel, (void)data;
    tell(DTHREAD);
    return DTHREAD_CHANNEL_BROKEN;
}

static void *receive_data(duda_dthread_channel_t *channel)
{
    (void)channel;
    tell(DTHREAD);
    return NULL;
}

const struct duda_old_dthread old_dthread = {
    .create = create_thread,
    .status = get_status,
    .yield = yield,
    .resume = resume,
    .running = get_running,
    .chan_create = create_channel,
    .chan_free = end_channel,
    .chan_get_sender = get_end,
    .chan_set_sender = set_end,
    .chan_get_receiver = get_end,
    .chan_set_receiver = set_end,
    .chan_done = is_done,
    .chan_end = end_channel,
    .chan_send = send_data,
    .chan_recv = receive_data,
};
