// SPDX-License-Identifier: Apache-2.0
/*
 * rest: notes by number. Reading is for everybody, writing needs a token, which a callback checks before the handlers.
 *
 *     curl http://localhost:2001/rest/notes/1
 *     curl -X PUT -H 'Authorization: Bearer secret' -d 'buy milk' http://localhost:2001/rest/notes/1
 *     curl -X DELETE -H 'Authorization: Bearer secret' http://localhost:2001/rest/notes/1
 *
 * Workers are threads, so that what all requests share needs a lock.
 */
#include <duda/duda.h>

#include <pthread.h>
#include <string.h>

DUDA_REGISTER("Duda I/O examples", "REST");

enum { NOTES = 100, NOTE_BYTES_MAX = 1000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char notes[NOTES][NOTE_BYTES_MAX + 1];

/* Returns 0: the request continues; -1: it was answered. */
static int check_token(duda_request_t *dr)
{
    if (request->is_get(dr) || request->is_head(dr) || request->header_cmp(dr, "Authorization", "Bearer secret") == 0)
        return 0;
    response->http_header(dr, "WWW-Authenticate: Bearer");
    response->http_status(dr, 401);
    response->printf(dr, "a token is needed\n");
    response->end(dr, NULL);
    return -1;
}

/* Returns the note of the request, or NULL after it has answered 404. */
static char *find_note(duda_request_t *dr)
{
    long n;
    if (param->get_number(dr, "id", &n) == 0 && n >= 0 && n < NOTES)
        return notes[n];
    response->error(dr, 404);
    return NULL;
}

static void get_note(duda_request_t *dr)
{
    char *note = find_note(dr), text[NOTE_BYTES_MAX + 1];
    if (!note)
        return;
    pthread_mutex_lock(&lock);
    memcpy(text, note, sizeof(text));
    pthread_mutex_unlock(&lock);
    if (!text[0]) {
        response->error(dr, 404);
        return;
    }
    response->http_content_type(dr, "txt");
    response->printf(dr, "%s\n", text);
    response->end(dr, NULL);
}

static void set_note(duda_request_t *dr, const char *text, size_t len)
{
    char *note = find_note(dr);
    if (!note)
        return;
    pthread_mutex_lock(&lock);
    memcpy(note, text, len);
    note[len] = 0;
    pthread_mutex_unlock(&lock);
    response->http_status(dr, 204);
    response->end(dr, NULL);
}

static void put_note(duda_request_t *dr)
{
    size_t len = 0;
    const char *text = request->body(dr, &len);
    set_note(dr, text ? text : "", text ? len : 0);
}

static void delete_note(duda_request_t *dr)
{
    set_note(dr, "", 0);
}

int duda_main(void)
{
    struct duda_route *put = router->put("/notes/:id", put_note);
    if (!put || router->limit(put, NOTE_BYTES_MAX) < 0 || router->before_all(check_token) < 0)
        return -1;
    return router->get("/notes/:id", get_note) && router->delete ("/notes/:id", delete_note) ? 0 : -1;
}
