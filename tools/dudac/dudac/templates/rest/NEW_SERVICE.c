// SPDX-License-Identifier: Apache-2.0
/*
 * NEW_SERVICE: counters in memory, as a REST service.
 *
 *     GET     /NEW_SERVICE/counters/        {"apples": 3, "pears": 5}
 *     GET     /NEW_SERVICE/counters/apples  3
 *     PUT     /NEW_SERVICE/counters/apples  sets it to the number in the body
 *     DELETE  /NEW_SERVICE/counters/apples  removes it
 *
 * Names have letters, digits, "-" and "_", so that JSON needs no escapes.
 */
#include <duda/duda.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

DUDA_REGISTER("NEW_SERVICE", "NEW_SERVICE");

enum { COUNTERS_MAX = 100, NAME_BYTES_MAX = 32, NUMBER_BYTES_MAX = 20 };

struct counter {
    char name[NAME_BYTES_MAX];
    long value;
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
static int set_counter(const char *name, long value)
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

/* Returns 0, or -1 after a response: the name cannot be that of a counter. */
static int check_name(duda_request_t *dr)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    const char *name = param->get(dr, "name");
    if (name && strlen(name) < NAME_BYTES_MAX && name[strspn(name, allowed)] == '\0')
        return 0;
    response->error(dr, 400);
    return -1;
}

/* Reads the number that is the body. Returns 0 or -EINVAL. */
static int read_number(duda_request_t *dr, long *ret)
{
    size_t len;
    char *end;
    const char *body = request->body(dr, &len);
    if (!body || len == 0 || len > NUMBER_BYTES_MAX)
        return -EINVAL;
    errno = 0;
    *ret = strtol(body, &end, 10);
    return errno || end != body + len ? -EINVAL : 0;
}

static void list_counters(duda_request_t *dr)
{
    response->http_content_type(dr, "json");
    response->printf(dr, "{");
    pthread_mutex_lock(&lock);
    for (int i = 0; i < n_counters; i++)
        response->printf(dr, "%s\"%s\": %ld", i ? ", " : "", counters[i].name, counters[i].value);
    pthread_mutex_unlock(&lock);
    response->printf(dr, "}\n");
    response->end(dr, NULL);
}

static void get_counter(duda_request_t *dr)
{
    if (check_name(dr) < 0)
        return;
    pthread_mutex_lock(&lock);
    const struct counter *c = find_counter(param->get(dr, "name"));
    long value = c ? c->value : 0;
    pthread_mutex_unlock(&lock);
    if (!c) {
        response->error(dr, 404);
        return;
    }
    response->http_content_type(dr, "json");
    response->printf(dr, "%ld\n", value);
    response->end(dr, NULL);
}

static void put_counter(duda_request_t *dr)
{
    long value;
    if (check_name(dr) < 0)
        return;
    if (read_number(dr, &value) < 0) {
        response->error(dr, 400);
        return;
    }
    pthread_mutex_lock(&lock);
    int status = set_counter(param->get(dr, "name"), value);
    pthread_mutex_unlock(&lock);
    response->http_status(dr, status);
    response->end(dr, NULL);
}

static void delete_counter(duda_request_t *dr)
{
    if (check_name(dr) < 0)
        return;
    pthread_mutex_lock(&lock);
    int status = remove_counter(param->get(dr, "name"));
    pthread_mutex_unlock(&lock);
    response->http_status(dr, status);
    response->end(dr, NULL);
}

int duda_main(void)
{
    const char *counter = "/counters/:name";
    struct duda_route *put = router->put(counter, put_counter);
    if (!put || router->limit(put, NUMBER_BYTES_MAX) < 0)
        return -1;
    return router->get("/counters/", list_counters) && router->get(counter, get_counter) &&
                   router->delete (counter, delete_counter)
               ? 0
               : -1;
}
