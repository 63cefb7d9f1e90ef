// SPDX-License-Identifier: Apache-2.0
/*
 * json: a list of books in memory. A client adds one by a JSON object, and gets all of them as an array.
 *
 *     curl -d '{"title": "Emma", "year": 1815, "tags": ["novel"]}' http://localhost:2001/json/books
 *     curl http://localhost:2001/json/books
 *
 * The package json is a shared object that the server loads when duda_main() asks for it. A tree is freed with
 * json->delete(): what json->parse_data() and the creators return is the service's.
 */
#include <duda/duda.h>
#include <duda/packages/json/json.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>

DUDA_REGISTER("Duda I/O examples", "JSON");

enum { BOOKS_MAX = 100, TITLE_BYTES = 100, BODY_BYTES_MAX = 10000 };

struct book {
    char title[TITLE_BYTES];
    int64_t year;
    int tags;
};

/* Of all workers. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct book books[BOOKS_MAX];
static int n_books;

/* Returns NULL, or what is wrong. */
static const char *read_book(const json_t *root, struct book *ret)
{
    const char *title = json->get_string(root, "title");
    if (!title || strlen(title) >= sizeof(ret->title))
        return "title must be a string of less than 100 bytes";
    if (json->get_int(root, "year", &ret->year) < 0)
        return "year must be a whole number";
    snprintf(ret->title, sizeof(ret->title), "%s", title);
    ret->tags = json->get_array_size(json->find(root, "tags"));
    return NULL;
}

static bool add_book(const struct book *book)
{
    pthread_mutex_lock(&lock);
    bool room = n_books < BOOKS_MAX;
    if (room)
        books[n_books++] = *book;
    pthread_mutex_unlock(&lock);
    return room;
}

/* Functions that create and add values accept NULL, so that their results need not be checked one by one. */
static json_t *make_book(const struct book *book)
{
    json_t *object = json->create_object();
    json->add_to_object(object, "title", json->create_string(book->title));
    json->add_to_object(object, "year", json->create_number((double)book->year));
    json->add_to_object(object, "tags", json->create_number(book->tags));
    return object;
}

static void send_error(duda_request_t *dr, int status, const char *error)
{
    json_t *object = json->create_object();
    json->add_to_object(object, "error", json->create_string(error));
    response->http_status(dr, status);
    json->send(dr, object);
    json->delete (object);
}

static void post_book(duda_request_t *dr)
{
    struct book book;
    json_t *root = json->parse_data(dr);
    const char *error = root ? read_book(root, &book) : json->get_error();
    if (error)
        send_error(dr, 400, error);
    else if (!add_book(&book))
        send_error(dr, 507, "there are too many books");
    else {
        response->http_status(dr, 201);
        json->send(dr, root);
    }
    json->delete (root);
}

static void list_books(duda_request_t *dr)
{
    json_t *array = json->create_array();
    pthread_mutex_lock(&lock);
    for (int i = 0; i < n_books; i++)
        json->add_to_array(array, make_book(&books[i]));
    pthread_mutex_unlock(&lock);
    json->send(dr, array);
    json->delete (array);
}

int duda_main(void)
{
    duda_load_package(json, "json");
    struct duda_route *post = router->post("/books", post_book);
    if (!post || router->limit(post, BODY_BYTES_MAX) < 0)
        return -1;
    return router->get("/books", list_books) ? 0 : -1;
}
