// SPDX-License-Identifier: Apache-2.0
/*
 * NEW_SERVICE: counters in memory, as a REST service with JSON.
 *
 *     GET     /NEW_SERVICE/counters/        {"apples":3,"pears":5}
 *     GET     /NEW_SERVICE/counters/apples  {"value":3}
 *     PUT     /NEW_SERVICE/counters/apples  sets it to the "value" of the object in the body
 *     DELETE  /NEW_SERVICE/counters/apples  removes it
 *
 * Errors are {"error":"what is wrong"}.
 */
#include <duda/duda.h>
#include <duda/packages/json/json.h>

#include <pthread.h>
#include <string.h>

DUDA_REGISTER("NEW_SERVICE", "NEW_SERVICE");

enum { COUNTERS_MAX = 100, NAME_BYTES_MAX = 32, BODY_BYTES_MAX = 1000 };

struct counter {
    char name[NAME_BYTES_MAX];
    int64_t value;
};

/* Of all workers. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct counter counters[COUNTERS_MAX];
static int n_counters;

/* ── counters; the caller holds the lock ── */

static struct counter *find_counter(const char *name)
{
    for (int i = 0; i < n_counters; i++)
        if (strcmp(counters[i].name, name) == 0)
            return &counters[i];
    return NULL;
}

/* Returns 201 (it is new), 200, or 507: there are too many. */
static int set_counter(const char *name, int64_t value)
{
    struct counter *c = find_counter(name);
    int status = c ? 200 : 201;
    if (!c && n_counters == COUNTERS_MAX)
        return 507;
    if (!c) {
        c = &counters[n_counters++];
        memcpy(c->name, name, strlen(name) + 1);
    }
    c->value = value;
    return status;
}

/* Returns 204, or 404. */
static int remove_counter(const char *name)
{
    struct counter *c = find_counter(name);
    if (c)
        *c = counters[--n_counters];
    return c ? 204 : 404;
}

/* ── requests ── */

/* Ends the response with an object that has one value, which it frees. */
static void send_pair(duda_request_t *dr, int status, const char *key, json_t *value)
{
    json_t *object = json->create_object();
    json->add_to_object(object, key, value);
    response->http_status(dr, status);
    json->send(dr, object);
    json->delete (object);
}

static void send_error(duda_request_t *dr, int status, const char *error)
{
    send_pair(dr, status, "error", json->create_string(error));
}

/* Returns the name of the counter, or NULL after a response: it is too long. */
static const char *get_name(duda_request_t *dr)
{
    const char *name = param->get(dr, "name");
    if (name && strlen(name) < NAME_BYTES_MAX)
        return name;
    send_error(dr, 400, "the name is too long");
    return NULL;
}

/* Reads the "value" of the body. Returns NULL, or what is wrong. */
static const char *read_value(duda_request_t *dr, int64_t *ret)
{
    json_t *body = json->parse_data(dr);
    const char *error = body ? NULL : json->get_error();
    if (body && json->get_int(body, "value", ret) < 0)
        error = "value must be a whole number";
    json->delete (body);
    return error;
}

static void list_counters(duda_request_t *dr)
{
    json_t *object = json->create_object();
    pthread_mutex_lock(&lock);
    for (int i = 0; i < n_counters; i++)
        json->add_to_object(object, counters[i].name, json->create_number((double)counters[i].value));
    pthread_mutex_unlock(&lock);
    json->send(dr, object);
    json->delete (object);
}

static void get_counter(duda_request_t *dr)
{
    const char *name = get_name(dr);
    if (!name)
        return;
    pthread_mutex_lock(&lock);
    const struct counter *c = find_counter(name);
    int64_t value = c ? c->value : 0;
    pthread_mutex_unlock(&lock);
    if (c)
        send_pair(dr, 200, "value", json->create_number((double)value));
    else
        send_error(dr, 404, "there is no such counter");
}

static void put_counter(duda_request_t *dr)
{
    int64_t value;
    const char *name = get_name(dr);
    if (!name)
        return;
    const char *error = read_value(dr, &value);
    if (error) {
        send_error(dr, 400, error);
        return;
    }
    pthread_mutex_lock(&lock);
    int status = set_counter(name, value);
    pthread_mutex_unlock(&lock);
    if (status == 507)
        send_error(dr, status, "there are too many counters");
    else
        send_pair(dr, status, "value", json->create_number((double)value));
}

static void delete_counter(duda_request_t *dr)
{
    const char *name = get_name(dr);
    if (!name)
        return;
    pthread_mutex_lock(&lock);
    int status = remove_counter(name);
    pthread_mutex_unlock(&lock);
    if (status == 404) {
        send_error(dr, status, "there is no such counter");
        return;
    }
    response->http_status(dr, status);
    response->end(dr, NULL);
}

/* Errors of the framework, such as other paths and methods, and bodies that are too large. */
static void end_with_error(duda_request_t *dr, int status)
{
    send_error(dr, status, status == 404 ? "there is no such path" : "the request cannot be answered");
}

static void add_routes(void)
{
    router->get("/", list_counters);
    router->get("/:name", get_counter);
    router->put("/:name", put_counter);
    router->delete ("/:name", delete_counter);
}

int duda_main(void)
{
    duda_load_package(json, "json");
    struct duda_route *all = router->group("/counters", add_routes);
    router->error(end_with_error);
    return router->limit(all, BODY_BYTES_MAX);
}
