// SPDX-License-Identifier: Apache-2.0
/*
 * Commands of plugins to the program, and the results of the reloads that they ask for (<monkey/inspect.h>). The
 * program carries them out in the main thread, as at a signal.
 */
#include "server/server.h"

#include <monkey/inspect.h>

#include <assert.h>
#include <errno.h>

void mk_server_on_command(struct mk_server *s, mk_server_command_fn fn)
{
    s->command_fn = fn;
}

void mk__server_begin_asked(struct mk_server *s)
{
    assert(!s->served);
    pthread_mutex_lock(&s->lock);
    s->served = s->asked;
    s->asked = NULL;
    pthread_mutex_unlock(&s->lock);
}

void mk__server_end_asked(struct mk_server *s, int err)
{
    pthread_mutex_lock(&s->lock);
    for (struct mk_server_reload *one = s->served, *next; one; one = next) {
        next = one->next;
        one->err = err;
        mk_server_problems(s, &one->problems);
        mk_post(one->loop, &one->message);
    }
    s->served = NULL;
    pthread_mutex_unlock(&s->lock);
}
