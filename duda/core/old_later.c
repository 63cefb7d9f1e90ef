// SPDX-License-Identifier: Apache-2.0
/*
 * The original API: objects that this version does not offer. Their functions do nothing and return an error.
 */
#include "old.h"

#include "current.h"
#include "message.h"
#include "service.h"

#include <stdatomic.h>

static void tell(void)
{
    struct service *s = current.service;
    if (s && !atomic_exchange(&s->old.told, true))
        message_log_of(s, MK_LOG_ERROR,
                       "this version does not have the object \"session\": its functions return errors");
}

static int init_sessions(void)
{
    tell();
    return -1;
}

static int create_session(duda_request_t *dr, const char *name, const char *value, int expires)
{
    (void)dr, (void)name, (void)value, (void)expires;
    tell();
    return -1;
}

static int find_session(duda_request_t *dr, const char *name)
{
    (void)dr, (void)name;
    tell();
    return -1;
}

static void *get_session(duda_request_t *dr, const char *name)
{
    (void)dr, (void)name;
    tell();
    return NULL;
}

const struct duda_old_session old_session = {
    .init = init_sessions,
    .create = create_session,
    .destroy = find_session,
    .get = get_session,
    .isset = find_session,
};
