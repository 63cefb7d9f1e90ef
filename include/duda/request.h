// SPDX-License-Identifier: Apache-2.0
/*
 * The object `request`: what the client has sent (docs/reference/duda/request.md).
 *
 * Strings end with a NUL and are valid until the request ends, unless a function says otherwise. They take memory of
 * the request, of which there are 256 KB: keep a value that is needed often. Without memory the result is NULL.
 */
#ifndef DUDA_REQUEST_H
#define DUDA_REQUEST_H

#include "types.h"

/*
 * Receives a piece of the body, which is valid during the call. `end` is true exactly once: with the last piece, or
 * with an empty one after it. If the body cannot be received completely, `end` never comes: the request ends instead,
 * see request->on_leave().
 */
typedef void (*duda_piece_fn)(duda_request_t *dr, const char *piece, size_t len, bool end, void *data);

struct duda_api_request {
    /* Return the method as the client sent it ("GET"), and the decoded path. */
    const char *(*method)(duda_request_t *dr);
    const char *(*path)(duda_request_t *dr);
    /* Returns the request target as the client sent it, not decoded. */
    const char *(*target)(duda_request_t *dr);
    /* Returns what follows the "?", not decoded; NULL if there is none. */
    const char *(*query)(duda_request_t *dr);
    /* Returns the host that the client asked for, without a port; may be empty. */
    const char *(*host)(duda_request_t *dr);
    /* Returns "https" if the client uses TLS, with this server or with a trusted proxy, else "http". */
    const char *(*scheme)(duda_request_t *dr);
    /* Returns the address of the client ("192.0.2.1", "2001:db8::1", "unix", "unknown"), see RealIPHeader. */
    const char *(*client)(duda_request_t *dr);
    /* Returns the request ID, which is the same as in the logs. */
    const char *(*id)(duda_request_t *dr);
    /* Returns the name of the authenticated user, or NULL. */
    const char *(*user)(duda_request_t *dr);

    /* Return whether the request has this method. */
    bool (*is_get)(duda_request_t *dr);
    bool (*is_head)(duda_request_t *dr);
    bool (*is_post)(duda_request_t *dr);
    bool (*is_put)(duda_request_t *dr);
    bool (*is_delete)(duda_request_t *dr);
    bool (*is_patch)(duda_request_t *dr);
    bool (*is_options)(duda_request_t *dr);

    /* Returns whether this is a POST, PUT or PATCH with a body of at least one byte. */
    bool (*is_data)(duda_request_t *dr);
    /* Returns whether Content-Type is this media type; letter case and parameters ("; charset=...") do not count. */
    bool (*is_content_type)(duda_request_t *dr, const char *media_type);
    /* Returns the bytes of the body; -1 if there is none, or if the client has not said how long it is. */
    int64_t (*content_length)(duda_request_t *dr);
    /*
     * Returns the body, with a NUL after it which `*ret_len` does not count; NULL if there is none, or if the route
     * has it read in pieces. `ret_len` may be NULL.
     */
    const char *(*body)(duda_request_t *dr, size_t *ret_len);
    /* Returns a copy of the body, which may be changed; NULL as body(), or without memory. */
    char *(*get_data)(duda_request_t *dr, size_t *ret_len);

    /* Returns the value of a header; NULL if there is none. Names have no letter case; several lines are joined. */
    const char *(*header_get)(duda_request_t *dr, const char *name);
    /* Compares the value of a header in all bytes. Returns 0 if it is equal, else -1. */
    int (*header_cmp)(duda_request_t *dr, const char *name, const char *value);
    /* Returns where `text` begins in the value of a header, without regard to letter case; -1 if it does not. */
    int (*header_contains)(duda_request_t *dr, const char *name, const char *text);
    /* Gets the n-th header line, from 0. Returns 0, -ENOENT (there are not that many) or -ENOMEM. */
    int (*header_at)(duda_request_t *dr, unsigned n, const char **ret_name, const char **ret_value);

    /*
     * Passes the body to `fn` in pieces as they arrive, for a route whose body is not collected. A body that was
     * collected is one piece, within the call. A body of more than `bytes_max` bytes (0: MaxBodySize of the server,
     * which always holds) gets 413. Returns 0, -EALREADY (it was called before, or the response has ended), -EINVAL
     * (`fn` is NULL; or in a callback before the handler, for which the body is collected) or -ENOMEM.
     */
    int (*read)(duda_request_t *dr, uint64_t bytes_max, duda_piece_fn fn, void *data);
    /* Stops reading the body until resume(), so that the client has to wait. Further pieces come in later calls. */
    void (*pause)(duda_request_t *dr);
    void (*resume)(duda_request_t *dr);

    /*
     * Calls `fn` when the request ends before the service has sent a complete response: the client has left, perhaps
     * after response->end(), or the server has answered itself (a timeout, a body that is too large). One function for
     * each request, called before that of response->end(); NULL removes it.
     * In it, the functions of this object can be called. A client that leaves without a word is noticed when something
     * is sent to it.
     */
    void (*on_leave)(duda_request_t *dr, duda_event_fn fn, void *data);

    /* Returns whether `dr` is a request of this service and worker that has not ended; `dr` may be any address. */
    bool (*validate_request)(const duda_request_t *dr);
    /* Returns whether `fd` is the connection of such a request. */
    bool (*validate_socket)(int fd);

    /* Returns Last-Event-ID, the last event that a client of server-sent events has received; NULL if there is none. */
    const char *(*last_event_id)(duda_request_t *dr);

    /* Returns the major version of HTTP: 1 or 2. */
    int (*http_major)(duda_request_t *dr);

    /* Returns what a verified token says of the user, a JSON object as text; NULL if there is none. */
    const char *(*claims)(duda_request_t *dr);
};

DUDA_OBJECT(struct duda_api_request, request)

#endif
