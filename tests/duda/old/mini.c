// SPDX-License-Identifier: Apache-2.0
/* Level 1.5: the root of its host, with maps, coroutines that make the page, and articles that clients send. */
#include "webservice.h"

DUDA_REGISTER("Old services", "Mini");

struct bundle {
    duda_dthread_channel_t *chan;
    duda_request_t *dr;
};

int latest;
char *store;
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static char *get_path(int id)
{
    char *path = mem->alloc(1024);

    snprintf(path, 1024, "%s/%d.html", store, id);
    return path;
}

void consumer(void *arg)
{
    int sum = 0;
    char *row = mem->alloc(64);
    struct bundle *bundle = arg;
    duda_request_t *dr = bundle->dr;
    char *path = get_path(latest);

    while (!dthread->chan_done(bundle->chan)) {
        int *n = dthread->chan_recv(bundle->chan);
        sum += *n;
        mem->free(n);
    }
    snprintf(row, 64, "X-Version: %d %d", latest, sum);
    gc->add(dr, path);
    gc->add(dr, row);
    response->http_status(dr, 200);
    response->http_header(dr, row);
    response->http_content_type(dr, "html");
    response->sendfile(dr, path);
    response->end(dr, NULL);
}

void producer(void *chan)
{
    int i;

    for (i = 1; i <= 10; i++) {
        int *n = mem->alloc(sizeof(int));
        *n = i;
        dthread->chan_send(chan, n);
    }
    dthread->chan_end(chan);
}

void cb_home(duda_request_t *dr)
{
    response->http_status(dr, 200);
    response->printf(dr, "home");
    response->end(dr, NULL);
}

void cb_update(duda_request_t *dr)
{
    int fd, bytes;
    unsigned long len;
    char *path, *text;

    if (request->is_data(dr) == MK_FALSE)
        goto error;
    text = request->get_data(dr, &len);
    pthread_mutex_lock(&mutex);
    path = get_path(latest + 1);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    bytes = write(fd, text, len);
    close(fd);
    latest++;
    pthread_mutex_unlock(&mutex);
    gc->add(dr, path);
    gc->add(dr, text);
    gc->add(dr, data); /* a mistake: the object, instead of the text */
    response->http_status(dr, 200);
    response->printf(dr, "%d bytes", bytes);
    response->end(dr, NULL);

error:
    response->http_status(dr, 500);
    response->printf(dr, "no data");
    response->end(dr, NULL);
}

void cb_article(duda_request_t *dr)
{
    int cid, pid;
    duda_dthread_channel_t *chan = dthread->chan_create(0, monkey->mem_free);
    struct bundle *bundle = monkey->mem_alloc(sizeof(*bundle));

    bundle->chan = chan;
    bundle->dr = dr;
    cid = dthread->create(consumer, bundle);
    pid = dthread->create(producer, chan);
    dthread->chan_set_sender(chan, pid);
    dthread->chan_set_receiver(chan, cid);
    dthread->resume(cid);
    dthread->chan_free(chan);
    monkey->mem_free(bundle);
}

int duda_main()
{
    store = mem->alloc(1024);
    snprintf(store, 1024, "%s/articles", data->get_path());
    conf->service_root();
    latest = 1;
    map->static_root("cb_home");
    map->static_add("/Article/update", "cb_update");
    map->static_add("/Article", "cb_article");
    return 0;
}

void duda_exit()
{
    mem->free(store);
}
