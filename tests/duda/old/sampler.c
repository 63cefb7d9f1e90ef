// SPDX-License-Identifier: Apache-2.0
/* Level 1: a thread of pthread_create(), which uses the objects, and fills a file of the data folder. */
#include "webservice.h"
#include "packages/base64/base64.h"
#include "packages/json/json.h"

DUDA_REGISTER("Old services", "Sampler");

static pthread_t thread;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint64_t last;
static duda_global_t unit;

void *make_unit(void *data)
{
    return data;
}

void on_signal(int fd, uint64_t value)
{
    pthread_mutex_lock(&mutex);
    last = value;
    pthread_mutex_unlock(&mutex);
}

void *sample(void *arg)
{
    unsigned long len;
    char *path = NULL, *text;
    FILE *file;
    json_t *row = json->create_object();

    json->add_to_object(row, "arg", json->create_string(arg));
    json->add_to_object(row, "unit", json->create_string(global->get(unit)));
    text = json->print_unformatted(row);
    json->delete (row);
    msg->info("a sample of %s", text);
    monkey->str_build(&path, &len, "%ssample.json", data->get_path() ? data->get_path() : "/no/folder/");
    file = fopen(path, "w");
    if (file) {
        fputs(text, file);
        fclose(file);
    }
    mem->free(text);
    monkey->mem_free(path);
    event->signal(42);
    return NULL;
}

void cb_last(duda_request_t *dr)
{
    response->http_status(dr, 200);
    pthread_mutex_lock(&mutex);
    response->printf(dr, "%d ", (int)last);
    pthread_mutex_unlock(&mutex);
    response->sendfile(dr, data->locate("sample.json"));
    response->end(dr, NULL);
}

void *wait_for_ever(void *arg)
{
    for (;;)
        sleep(60);
    return NULL;
}

void cb_endless(duda_request_t *dr)
{
    pthread_attr_t attr;

    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    response->http_status(dr, 200);
    response->printf(dr, "%d", pthread_create(&thread, &attr, wait_for_ever, NULL));
    response->end(dr, NULL);
}

void cb_start(duda_request_t *dr)
{
    response->http_status(dr, 200);
    response->printf(dr, "%d", pthread_create(&thread, NULL, sample, "cpu") | pthread_join(thread, NULL));
    response->end(dr, NULL);
}

int duda_main()
{
    duda_load_package(json, "json");
    duda_event_set_signal_callback(on_signal);
    duda_global_init(&unit, make_unit, "ms");
    map->static_add("/last", "cb_last");
    map->static_add("/start", "cb_start");
    map->static_add("/endless", "cb_endless");
    return 0;
}
