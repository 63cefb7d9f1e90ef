// SPDX-License-Identifier: Apache-2.0
/* Level 2: a private loop in its own thread, and functions before the workers' loops. */
#include "webservice.h"

DUDA_REGISTER("Old services", "Loops");

int r, w;
duda_global_t started;
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
int seen, ready;

void *looper(void *arg)
{
    int i, n;
    char c;
    mk_event_loop_t *loop = event->loop_create(8);

    event->loop_channel_create(loop, &r, &w);
    pthread_mutex_lock(&lock);
    ready = 1;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
    while ((n = event->loop_wait(loop)) >= 0) {
        for (i = 0; i < n; i++) {
            if (loop->events[i].fd != r || read(r, &c, 1) != 1)
                continue;
            pthread_mutex_lock(&lock);
            seen++;
            pthread_cond_signal(&changed);
            pthread_mutex_unlock(&lock);
        }
    }
    event->loop_free(loop);
    close(r);
    close(w);
    return NULL;
}

void before_loop(void *data)
{
    global->set(started, data);
}

void cb_ring(duda_request_t *dr)
{
    int n;

    pthread_mutex_lock(&lock);
    while (!ready)
        pthread_cond_wait(&changed, &lock);
    n = seen;
    if (write(w, "x", 1) == 1) {
        while (seen == n)
            pthread_cond_wait(&changed, &lock);
    }
    pthread_mutex_unlock(&lock);
    response->http_status(dr, 200);
    response->printf(dr, "%i %s %s", seen, event->loop_backend(), (char *)global->get(started));
    response->end(dr, NULL);
}

int duda_main()
{
    global->init(&started, NULL, NULL);
    worker->pre_loop(before_loop, "before");
    worker->spawn(looper, NULL);
    router->map("/ring/", cb_ring);
    return 0;
}
