// SPDX-License-Identifier: Apache-2.0
/* Level 1: a book of visitors: forms by POST, a list in memory, a cookie with the name, redirects, and pages of html/.
 */
#include "webservice.h"
#include <assert.h>

DUDA_REGISTER("Old services", "Visitors");

#define ENTRIES 100

struct entry {
    char *name;
    char *text;
    time_t when;
    struct mk_list _head;
};

struct mk_list entries;
int n_entries = 0;
int n_ended = 0;
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* key=value&key=value, without decoding */
static char *field(char *data, char *key)
{
    char *start, *stop;
    int len = strlen(key);

    start = data;
    while (start && *start) {
        stop = strchr(start, '&');
        if (strncmp(start, key, len) == 0 && start[len] == '=')
            return monkey->str_copy_substr(start, len + 1, stop ? stop - start : strlen(start));
        start = stop ? stop + 1 : NULL;
    }
    return NULL;
}

static int is_valid(char *text)
{
    if (!text || strlen(text) == 0)
        return FALSE;
    return TRUE;
}

void end_of_request(duda_request_t *dr)
{
    pthread_mutex_lock(&mutex);
    n_ended++;
    pthread_mutex_unlock(&mutex);
}

void cb_sign(duda_request_t *dr)
{
    unsigned long len;
    char *data, *name;
    struct entry *e;

    if (request->is_data(dr) == MK_FALSE ||
        request->is_content_type(dr, "application/x-www-form-urlencoded") == MK_FALSE) {
        response->http_status(dr, 400);
        response->end(dr, NULL);
    }

    data = request->get_data(dr, &len);
    gc->add(dr, data);
    name = field(data, "name");
    if (is_valid(name) == FALSE) {
        gc->add(dr, name);
        response->http_status(dr, 400);
        response->printf(dr, "no name in %lu bytes", len);
        response->end(dr, NULL);
    }

    e = mem->alloc_z(sizeof(struct entry));
    e->name = name;
    e->text = field(data, "text");
    e->when = xtime->now();
    pthread_mutex_lock(&mutex);
    mk_list_add(&e->_head, &entries);
    n_entries++;
    pthread_mutex_unlock(&mutex);

    cookie->set(dr, "visitor", 7, name, strlen(name), xtime->tomorrow());
    response->http_status(dr, 302);
    response->http_header(dr, "Location: /visitors/list");
    response->end(dr, end_of_request);
}

void cb_list(duda_request_t *dr)
{
    char *visitor = NULL;
    int len = 0;
    struct mk_list *head;
    struct entry *e;

    response->http_status(dr, 200);
    response->http_header_n(dr, "Cache-Control: no-cache", 23);
    response->http_content_type(dr, "txt");
    if (cookie->get(dr, "visitor", &visitor, &len) == 0)
        response->printf(dr, "you are %.*s\n", len, visitor);
    pthread_mutex_lock(&mutex);
    mk_list_foreach(head, &entries)
    {
        e = mk_list_entry(head, struct entry, _head);
        assert(e->when > 0);
        response->printf(dr, "%s: %s\n", e->name, e->text ? e->text : "");
    }
    pthread_mutex_unlock(&mutex);
    response->end(dr, end_of_request);
}

/* Any method comes here. */
void cb_count(duda_request_t *dr)
{
    char *text;
    unsigned long len;

    monkey->str_build(&text, &len, "%i entries, %i ended\n", n_entries, n_ended);
    gc->add(dr, text);
    response->http_status(dr, 200);
    response->print(dr, text, len);
    response->end(dr, NULL);
}

void duda_exit()
{
    struct mk_list *head, *tmp;

    mk_list_foreach_safe(head, tmp, &entries)
    {
        struct entry *e = mk_list_entry(head, struct entry, _head);
        mk_list_del(&e->_head);
        free(e->name);
        free(e->text);
        mem->free(e);
    }
}

int duda_main()
{
    mk_list_init(&entries);
    map->static_add("/sign", "cb_sign");
    map->static_add("/list", "cb_list");
    map->static_add("/count", "cb_count");
    return 0;
}
