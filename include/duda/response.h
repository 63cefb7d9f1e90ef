// SPDX-License-Identifier: Apache-2.0
/*
 * The object `response`: a status, headers, and a queue of parts that are sent in order
 * (docs/reference/duda/response.md).
 *
 *     http_status, headers ─► print, printf, sendfile ... ─► end             sent at once, with Content-Length
 *                                                         ─► flush ─► ...    what follows is sent as it comes
 *
 * Nothing is sent before end(), flush() or send_headers(), and after those not before the callback returns. A handler
 * may return without end() and complete the response from another callback of the same worker, or from any thread by a
 * ticket. If it has not begun to send within HandlerTimeout, the server sends 503.
 *
 * Results: unless it says otherwise, a function returns 0; -EALREADY (the response has ended, the head was sent, or the
 * server has answered itself); -EINVAL (an argument); -ENOMEM; -ESTALE (the request has ended: `dr` must not be used
 * then); or -EPERM (the caller is no callback of the request's worker). All but -ENOMEM are mistakes, which are logged
 * with the name of the service, the same one at most once in ten seconds. After -ENOMEM of a function that adds to the
 * body, end() sends 500, or cuts a response that has begun.
 * Functions that add to the body return DUDA_AGAIN, too: done, and more than 64 KB wait; add more in on_writable().
 */
#ifndef DUDA_RESPONSE_H
#define DUDA_RESPONSE_H

#include "types.h"

/*
 * Writes the next bytes of a body, at most `size` (1,024 at least), to `to`. Returns their count, 0 (there are no
 * more), -EAGAIN (none now: call it again after wake()) or another -errno (the response is cut).
 */
typedef ssize_t (*duda_generate_fn)(duda_request_t *dr, char *to, size_t size, void *data);

/* Names a request for other threads and later times. It may be copied, and is harmless when the request has ended. */
struct duda_ticket {
    uint64_t opaque[6];
};

struct duda_api_response {
    /* Sets the status, 200 to 599; without this call it is 200. */
    int (*http_status)(duda_request_t *dr, int status);
    /* Adds `len` bytes, which it copies. */
    int (*print)(duda_request_t *dr, const char *data, int len);
    /* Adds formatted text of any length. */
    int (*printf)(duda_request_t *dr, const char *format, ...) DUDA_PRINTF(2, 3);
    /* Completes the response. Calls `done`, unless NULL, once the response was sent or the client has left. */
    int (*end)(duda_request_t *dr, duda_request_fn done);

    /* ── headers ── */

    /*
     * Adds a header from a row "Name: value", which is copied. Content-Length is as http_content_length(); "Connection:
     * close" closes the connection afterwards; other headers about framing, Date and Server are set by the server and
     * get -EINVAL, as does a value with control bytes.
     */
    int (*http_header)(duda_request_t *dr, const char *row);
    int (*http_header_n)(duda_request_t *dr, const char *row, int len);
    /* Adds a header with a formatted value. */
    int (*header)(duda_request_t *dr, const char *name, const char *format, ...) DUDA_PRINTF(3, 4);
    /* Removes the headers of this name that were added. */
    int (*header_remove)(duda_request_t *dr, const char *name);
    /* Sets Content-Type by the extension of a file name ("html"). Returns -ENOENT for an unknown one, too. */
    int (*http_content_type)(duda_request_t *dr, const char *extension);
    /*
     * Sets Content-Length instead of the sum of the parts; -1 omits it. For a body that is not complete when it begins
     * to be sent, and for HEAD. When end() finds another sum, that is sent and the mistake is logged.
     */
    int (*http_content_length)(duda_request_t *dr, int64_t bytes);
    /*
     * The service prints status line, headers and an empty line itself ("HTTP/1.1 200 OK\r\n..."). The server reads
     * them and sends them as the protocol of the connection wants it. Call it before the body begins.
     */
    int (*headers_off)(duda_request_t *dr);
    /* Sends status and headers now. Returns -EALREADY, too, if parts of the body were added. */
    int (*send_headers)(duda_request_t *dr);

    /* ── body ── */

    /* Adds `len` bytes, which it copies. */
    int (*write)(duda_request_t *dr, const void *data, size_t len);
    /*
     * Adds a file, which is opened now. A relative path is below DataDir of the service, and cannot leave it, not even
     * by a symbolic link; an absolute one is used as it is: never build it from what a client sends. Returns -errno of
     * open(2), -EINVAL if it is not a regular file, or relative without DataDir, and -EACCES if it is a program that
     * another plugin of the host runs; then nothing is added, which is logged if the response ends with 200 and
     * without a body.
     */
    int (*sendfile)(duda_request_t *dr, const char *path);
    /* Adds `len` bytes of a file from `offset` on; 0: up to its end. Returns -ERANGE if the file does not have them. */
    int (*sendfile_range)(duda_request_t *dr, const char *path, off_t offset, size_t len);
    /* Adds bytes that `fn` generates; it is called later, when the client can take them, and not for HEAD. */
    int (*generate)(duda_request_t *dr, duda_generate_fn fn, void *data);
    /* Calls a generator again that has returned -EAGAIN. */
    int (*wake)(duda_request_t *dr);
    /* Sends what was added, without ending. What is added afterwards is sent without a flush() when the callback ends.
     */
    int (*flush)(duda_request_t *dr);
    /* Calls `fn` when everything was sent after a function has returned DUDA_AGAIN. One function; NULL removes it. */
    int (*on_writable)(duda_request_t *dr, duda_event_fn fn, void *data);

    /* ── the end ── */

    /* The same as end(). */
    int (*finalize)(duda_request_t *dr, duda_request_fn done);
    /*
     * wait() says that the response comes later, and stops reading the body; cont() reads it again. Both are optional,
     * but in a dthread that returns before (dthread->handle()).
     */
    int (*wait)(duda_request_t *dr);
    int (*cont)(duda_request_t *dr);
    /*
     * Calls `fn` once the response was sent or the client has left, as end() does. One function for each request, the
     * last one set; NULL removes it.
     */
    int (*on_done)(duda_request_t *dr, duda_request_fn fn);
    /*
     * redirect() redirects with 301, 302, 303, 307 or 308 to a URI reference; error() sends the page of the host for a
     * status, 200 to 599. Both end the response, and discard the body that was added, with the headers that describe
     * it (Content-Type, ETag ...). Other headers are sent: cookies, WWW-Authenticate, Retry-After.
     */
    int (*redirect)(duda_request_t *dr, int status, const char *location);
    int (*error)(duda_request_t *dr, int status);
    /* Cuts the response, so that the client sees that it is incomplete. */
    int (*abort)(duda_request_t *dr);

    /* ── server-sent events (text/event-stream of the HTML standard) ── */

    /*
     * Begins a stream of events and sends its head. A comment is sent after each `heartbeat_s` seconds without an
     * event, so that a client that has left is noticed; 0: none.
     */
    int (*sse_begin)(duda_request_t *dr, unsigned heartbeat_s);
    /*
     * Sends an event. `event` (its type) and `id` may be NULL, and have no line ends (-EINVAL). The formatted text may
     * have any number of lines.
     */
    int (*sse_send)(duda_request_t *dr, const char *event, const char *id, const char *format, ...) DUDA_PRINTF(4, 5);
    /* Tells the client how long it waits before it connects again. */
    int (*sse_retry)(duda_request_t *dr, unsigned delay_ms);

    /* ── other threads ── */

    /* Makes a ticket of a request; any number of them may be made. */
    int (*ticket)(duda_request_t *dr, struct duda_ticket *ret);
    /*
     * Has `fn` called in the worker of the request, once for each call that has returned 0; its `dr` is NULL if the
     * request has ended. Any thread, any number of times; calls of one thread stay in order. A call that is under way
     * when duda_exit() returns is dropped. Returns 0, -ESRCH (the worker or the service has ended) or -ENOMEM.
     */
    int (*deliver)(const struct duda_ticket *ticket, duda_event_fn fn, void *data);

    /*
     * Adds `len` bytes without a copy: they must not change or be freed until the response is complete, which is after
     * end(): literals, static data, or memory that gc->add() frees.
     */
    int (*print_ref)(duda_request_t *dr, const void *data, size_t len);
    /*
     * Adds a text, which it copies, for HTML: & < > " ' become character references, so that it is text between tags
     * and in quoted attributes, whatever a client has sent. Tabs and line ends stay; other control characters become
     * U+FFFD. NULL is -EINVAL.
     */
    int (*print_html)(duda_request_t *dr, const char *text);
};

DUDA_OBJECT(struct duda_api_response, response)

#endif
