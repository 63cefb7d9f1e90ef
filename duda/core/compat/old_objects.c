// SPDX-License-Identifier: Apache-2.0
/*
 * The original API: finds its tables (old.h).
 */
#include "compat/old.h"
#include "objects.h"
#include "service/service.h"

#include <errno.h>
#include <string.h>

static const struct object objects[] = {
    {"request.1", sizeof(old_request), &old_request}, {"response.1", sizeof(old_response), &old_response},
    {"event.0", sizeof(old_event_0), &old_event_0},   {"monkey.1", sizeof(old_monkey), &old_monkey},
    {"console.1", sizeof(old_console), &old_console}, {"debug.1", sizeof(old_debug), &old_debug},
    {"param.any", sizeof(old_param), &old_param},     {"session.1", sizeof(old_session), &old_session},
    {"dthread.1", sizeof(old_dthread), &old_dthread},
};

int old_find_object(const struct service *s, const char *name, struct object *ret)
{
    *ret = (struct object){"self.1", sizeof(struct web_service), s ? &old_of(s)->self : NULL};
    if (strcmp(name, ret->name) == 0)
        return 0;
    for (size_t i = 0; i < MK_COUNT_OF(objects); i++) {
        *ret = objects[i];
        if (strcmp(name, ret->name) == 0)
            return 0;
    }
    return -ENOENT;
}

const void *old_find_package(const struct service *s, const char *name)
{
    return old_is(s) && strcmp(name, "coro") == 0 ? &old_dthread : NULL;
}
