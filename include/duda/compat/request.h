// SPDX-License-Identifier: Apache-2.0
/*
 * The original API: a request, and the object `request`.
 */
#ifndef DUDA_COMPAT_REQUEST_H
#define DUDA_COMPAT_REQUEST_H

#include "types.h"

struct web_service;

#ifdef DUDA_FRAMEWORK
#define DUDA_OLD_REQUEST duda_old_request
#else
#define DUDA_OLD_REQUEST duda_request
#endif

struct client_session {
    int socket;
};

/* Both strings are in copies of the request line: a blank follows them. */
struct session_request {
    struct duda_old_string uri;           /* the path as the client sent it */
    struct duda_old_string uri_processed; /* the decoded path */
    struct duda_old_string query_string;
};

/*
 * What services read of a duda_request_t. The framework fills it for services of levels 0 to 2; it is the head of its
 * own struct duda_request.
 */
struct DUDA_OLD_REQUEST {
    int socket;
    struct client_session *cs;
    struct session_request *sr;
    struct web_service *ws_root;
    struct duda_old_string appname;
    struct duda_old_string interface; /* of a route of an interface; else .data is NULL */
    struct duda_old_string method;
    struct duda_old_string *params; /* DUDA_OLD_SEGMENTS_MAX */
    short int n_params;
};

/*
 * Header names may end with a colon: "Host:". Without one, the value has a blank in front, as in the request's text.
 * The position that header_contains() returns counts it, too.
 */
struct duda_old_request_calls {
    int (*is_get)(duda_request_t *dr);
    int (*is_post)(duda_request_t *dr);
    int (*is_head)(duda_request_t *dr);
    int (*is_put)(duda_request_t *dr);
    int (*is_delete)(duda_request_t *dr);
    /* Returns true for POST and PUT with a body. */
    int (*is_data)(duda_request_t *dr);
    /* Compares the whole value of Content-Type, with regard to case. */
    int (*is_content_type)(duda_request_t *dr, const char *type);
    /* Returns a copy of the body with a NUL after it, for free(), or NULL. `len` may be NULL. */
    void *(*get_data)(duda_request_t *dr, unsigned long *len);
    /* Returns the length of the body, or -1 without one. */
    long (*content_length)(duda_request_t *dr);
    /* Returns a copy of the value for free(), or NULL. */
    char *(*header_get)(duda_request_t *dr, const char *name);
    /* Returns 0 if the value begins with `value`, else -1. */
    int (*header_cmp)(duda_request_t *dr, const char *name, const char *value);
    /* Returns where the value contains the text, compared without regard to case, or -1. */
    int (*header_contains)(duda_request_t *dr, const char *name, const char *text);
    /* Return whether a request of this worker has the socket, or is this one. */
    int (*validate_socket)(int socket);
    int (*validate_request)(duda_request_t *dr);
};

DUDA_OBJECT_AS(struct duda_old_request_calls, request, "request.1")

#endif
