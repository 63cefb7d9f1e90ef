// SPDX-License-Identifier: Apache-2.0
/*
 * Services by the addresses of their shared objects (origin.h).
 */
#include "origin.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>

/* Of all services of the process. */
static struct ws_origin *origins;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const void *find_object(const void *address)
{
    Dl_info info;
    return dladdr(address, &info) ? info.dli_fbase : NULL;
}

void ws_origin_add(struct ws_origin *origin, struct ws_service *service)
{
    pthread_mutex_lock(&lock);
    *origin = (struct ws_origin){.next = origins, .service = service};
    origins = origin;
    pthread_mutex_unlock(&lock);
}

void ws_origin_remove(struct ws_origin *origin)
{
    pthread_mutex_lock(&lock);
    struct ws_origin **place = &origins;
    while (*place && *place != origin)
        place = &(*place)->next;
    if (*place)
        *place = origin->next;
    pthread_mutex_unlock(&lock);
}

void ws_origin_set(struct ws_origin *origin, const void *address)
{
    pthread_mutex_lock(&lock);
    origin->object = find_object(address);
    pthread_mutex_unlock(&lock);
}

struct ws_service *ws_origin_get(const void *address)
{
    const void *object = find_object(address);
    pthread_mutex_lock(&lock);
    for (struct ws_origin *o = origins; o && object; o = o->next) {
        if (o->object == object)
            return o->service;
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

void ws_origin_put(void)
{
    pthread_mutex_unlock(&lock);
}
