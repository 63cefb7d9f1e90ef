// SPDX-License-Identifier: Apache-2.0
/*
 * An exchange: one request and its response, whatever protocol carries it.
 *
 * It belongs to the worker that reads it; every call here must come from that worker's thread. It lives
 * from the moment its head is complete until its response has been handed to the kernel or its client has
 * gone: what must know about the end registers with `mk_arena_defer(mk_request_arena(req), ...)`.
 *
 * Spans that the accessors return point into memory that may move between two callbacks: use them before
 * the callback returns, or copy them with `mk_arena_dup()`. The path is the exception: it stays.
 *
 * A handler may answer before it returns, or later from another callback in the same worker (a timer, a
 * job, a message): it then just returns, and calls `mk_response_end()` when it is done. A time limit of
 * the configuration answers for handlers that never do.
 */
#ifndef MONKEY_REQUEST_H
#define MONKEY_REQUEST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "address.h"
#include "arena.h"
#include "header_id.h"
#include "loop.h"
#include "status.h"
#include "str.h"

struct mk_request;
struct mk_io;
struct mk_tls_info;

enum mk_method {
    MK_METHOD_OTHER,
    MK_GET,
    MK_HEAD,
    MK_POST,
    MK_PUT,
    MK_DELETE,
    MK_OPTIONS,
    MK_CONNECT,
    MK_TRACE,
    MK_PATCH,
};

/* ── the request (RFC 9110) ── */

MK_API enum mk_method mk_request_method(const struct mk_request *req);
MK_API struct mk_str mk_request_method_name(const struct mk_request *req);

/* The target as it came, undecoded. */
MK_API struct mk_str mk_request_target(const struct mk_request *req);
/* Decoded once and normalized; starts with "/" ("*" for OPTIONS *, "" for CONNECT). NUL-terminated; stays. */
MK_API struct mk_str mk_request_path(const struct mk_request *req);
/* Behind the "?", undecoded. `.p` is NULL when there is no "?". */
MK_API struct mk_str mk_request_query(const struct mk_request *req);
/* The host that the client asked for: without port, with brackets if IPv6; may be empty. */
MK_API struct mk_str mk_request_host(const struct mk_request *req);
/* The version of HTTP: 1 and 0 or 1; 2 and 0. */
MK_API unsigned mk_request_major(const struct mk_request *req);
MK_API unsigned mk_request_minor(const struct mk_request *req);

/*
 * The value of a field, `.p` NULL when it did not come. When it came several times the values are joined by
 * ", " (RFC 9110 section 5.3), those of Cookie by "; " (RFC 9113 section 8.2.3).
 */
MK_API struct mk_str mk_request_header(struct mk_request *req, enum mk_header_id field);
MK_API struct mk_str mk_request_header_by_name(struct mk_request *req, struct mk_str name);
/* The n-th field line; false past the last one. */
MK_API bool mk_request_header_at(const struct mk_request *req, unsigned n, struct mk_str *ret_name,
                                 struct mk_str *ret_value);

/* ── who asks, and how it went ── */

/*
 * The other end of the connection: a client, or a proxy. The system is asked once for each connection, at its
 * beginning; behind a PROXY header it is asked again, and says AF_UNSPEC once the proxy has reset the connection.
 * Builds for small devices leave these three out.
 */
MK_API struct mk_address mk_request_peer(struct mk_request *req);
/*
 * The client: the peer, unless it is one of the TrustedProxies and says for whom it asks (a PROXY header, then the
 * field that RealIPHeader names). The same for all who ask about a request.
 */
MK_API struct mk_address mk_request_client(struct mk_request *req);
/* "http", or "https" where the client speaks that, with us or with a proxy that is trusted; a literal. */
MK_API struct mk_str mk_request_scheme(struct mk_request *req);

/* The connection of a request, for the plugin that carries it; see <monkey/transport.h>. */
MK_API const struct mk_io *mk_request_io(const struct mk_request *req);
/*
 * What is known of a connection that others cannot read, for as long as the callback; -ENOENT: this one is not. Builds
 * for small devices leave it out.
 */
MK_API int mk_request_tls_info(const struct mk_request *req, struct mk_tls_info *ret);

/* The name of whom an access hook has recognised; `.p` is NULL if nobody has. Copied. 0 or -ENOMEM. */
MK_API int mk_request_set_user(struct mk_request *req, struct mk_str name);
MK_API struct mk_str mk_request_user(const struct mk_request *req);

/*
 * The number of a request: what came in X-Request-Id if that is 1 to 128 letters, digits and -_.:/+=@, else 32
 * random hexadecimal digits. Lives as long as `req`; `.p` is NULL without memory.
 */
MK_API struct mk_str mk_request_id(struct mk_request *req);

/*
 * When the first byte of the request was seen, and when the first byte of the answer was ready: microseconds of
 * mk_loop_now_us(). 0: not yet, or no loaded plugin has the flag MK_PLUGIN_TIMES.
 */
MK_API uint64_t mk_request_began_us(const struct mk_request *req);
MK_API uint64_t mk_response_began_us(const struct mk_request *req);

/* Bytes of head and body so far. The body of the response: mk_request_bytes_sent() in <monkey/plugin.h>. */
MK_API uint64_t mk_request_bytes_received(const struct mk_request *req);
MK_API uint64_t mk_request_head_bytes(const struct mk_request *req); /* of the same, the head alone */
MK_API uint64_t mk_response_head_bytes(const struct mk_request *req);

/* ── content codings (RFC 9110 section 12.5.3) ── */

enum mk_coding { MK_CODING_IDENTITY, MK_CODING_GZIP, MK_CODING_BR, MK_CODING_ZSTD, MK_CODING_COUNT };

/* How welcome each coding is, in thousandths; 0: not acceptable. */
struct mk_accept {
    uint16_t weight[MK_CODING_COUNT];
};

/* As Content-Encoding names it; a literal. */
MK_API struct mk_str mk_coding_name(enum mk_coding coding);
/*
 * Reads an Accept-Encoding field. One that is absent or garbled accepts identity only. Identity that is not
 * mentioned is the least welcome of what is accepted.
 */
MK_API void mk_accept_encoding(struct mk_str value, struct mk_accept *ret);
/*
 * Takes the most welcome of the `offered` codings (enum mk_coding; the first of equals) out of `accept`, so that
 * the next call gives the second choice. False when none is left that is as welcome as identity.
 */
MK_API bool mk_accept_next(struct mk_accept *accept, const uint8_t *offered, unsigned n, enum mk_coding *ret);

/* Memory that lives as long as the exchange. */
MK_API struct mk_arena *mk_request_arena(struct mk_request *req);
MK_API struct mk_loop *mk_request_loop(const struct mk_request *req);
/* The worker's account, for what must outlive the exchange; it lives longer than any job. */
MK_API struct mk_account *mk_request_account(const struct mk_request *req);

/* ── the request's body ── */

/*
 * One piece of the body, valid during the call. `end` comes exactly once, with the last piece or with an
 * empty one. After a failure of the client it never comes: the exchange ends instead.
 */
typedef void (*mk_body_fn)(struct mk_request *req, struct mk_str piece, bool end, void *ctx);

/* Hands the body to `fn` in pieces as they arrive; a client that waits for "100 Continue" gets it now. */
MK_API void mk_request_read(struct mk_request *req, mk_body_fn fn, void *ctx);
/* Stops reading from the client, so that it is stopped by its own TCP, until resumed. */
MK_API void mk_request_pause(struct mk_request *req);
MK_API void mk_request_resume(struct mk_request *req);

/*
 * Collects the whole body and hands it to `fn` once, NUL-terminated, valid as long as the exchange. A body
 * of more than `bytes_max` (0: MaxRequestSize; never more than MaxBodySize) is answered with 413, and `fn` is
 * not called.
 */
MK_API void mk_request_collect(struct mk_request *req, size_t bytes_max, mk_body_fn fn, void *ctx);

/* ── the response ── */

/* Sets the status, 200 to 599; 200 unless set. Only before the head is on its way. */
MK_API int mk_response_set_status(struct mk_request *req, int status);
MK_API int mk_response_get_status(const struct mk_request *req);

/*
 * Adds a field. The value is copied; the name must be a literal or live as long as `req`. -EINVAL for a name
 * that is no token, a value with control bytes in it (so that nobody can inject a line), and the fields that
 * are the server's own business: Date, Server, Connection, Keep-Alive, Content-Length (mk_response_set_length),
 * Transfer-Encoding. -EALREADY when the head is on its way, -ENOMEM.
 */
MK_API int mk_response_header(struct mk_request *req, struct mk_str name, struct mk_str value);
/* The same without a copy: the value must live as long as `req`. */
MK_API int mk_response_header_ref(struct mk_request *req, struct mk_str name, struct mk_str value);
/* The same with a date, in seconds since 1970 (mk_loop_wall_seconds), as its value (RFC 9110 section 5.6.7). */
MK_API int mk_response_header_date(struct mk_request *req, struct mk_str name, int64_t seconds);
/* Is it a field of the server's own business? */
MK_API bool mk_response_header_reserved(struct mk_str name);
/* `.p` NULL when there is none. */
MK_API struct mk_str mk_response_get_header(const struct mk_request *req, struct mk_str name);
/* The n-th field; false past the last one. */
MK_API bool mk_response_header_at(const struct mk_request *req, unsigned n, struct mk_str *ret_name,
                                  struct mk_str *ret_value);
MK_API void mk_response_header_remove(struct mk_request *req, struct mk_str name);

/*
 * Adds a field behind the body (RFC 9110 section 6.5), for what is known only then: any time before its last byte is
 * taken, as by the generator that ends it; 16 at most. Name and value are as of mk_response_header(), and the field's
 * definition must allow that place. HTTP/1.0 has none, nor has a body that is missing or, on HTTP/1.1, of an announced
 * length; and many clients pass them over. -EINVAL, -ENOMEM; -EALREADY when all of the body has been taken. Builds for
 * small devices leave it out.
 */
MK_API int mk_response_trailer(struct mk_request *req, struct mk_str name, struct mk_str value);

/*
 * The body is a queue of parts, sent in their order. A part that cannot be queued (-ENOMEM) leaves the
 * response incomplete: end it with `mk_response_abort()`. -EALREADY: the response has ended before, perhaps because
 * its time was over; there is nothing to do. MK_AGAIN says that a lot is queued already: the
 * part was taken, more should wait for the drain callback.
 */
MK_API int mk_response_write(struct mk_request *req, struct mk_str copied);
MK_API int mk_response_write_ref(struct mk_request *req, struct mk_str lives_as_long_as_req);
/* `fd` is taken: it is closed after the part was sent, or at once on failure. */
MK_API int mk_response_write_file(struct mk_request *req, int fd, uint64_t offset, uint64_t length);

/*
 * Asked for up to `size` bytes at `to` whenever there is room. Returns the count, 0 for the end of the part,
 * -EAGAIN to be asked again after `mk_response_wake()`, any other -errno to give the response up.
 */
typedef ssize_t (*mk_generate_fn)(struct mk_request *req, char *to, size_t size, void *ctx);
MK_API int mk_response_generate(struct mk_request *req, mk_generate_fn fn, void *ctx);
MK_API void mk_response_wake(struct mk_request *req);

/* Called when the queue has room again after MK_AGAIN. */
typedef void (*mk_writable_fn)(struct mk_request *req, void *ctx);
MK_API void mk_response_on_writable(struct mk_request *req, mk_writable_fn fn, void *ctx);

/* Announces the length of a body whose parts are not all queued when the head leaves. */
MK_API int mk_response_set_length(struct mk_request *req, uint64_t bytes);
/* Is the length of the body certain, announced or because all of it is queued? */
MK_API bool mk_response_get_length(const struct mk_request *req, uint64_t *ret_bytes);

/* The connection ends after this response. Before the head is on its way. */
MK_API void mk_response_close_connection(struct mk_request *req);

/* The response is complete. Nothing may be added; `req` may be gone when the calling callback returns. */
MK_API void mk_response_end(struct mk_request *req);
/* Gives up: the connection (or stream) is cut, so that the client sees an incomplete answer. */
MK_API void mk_response_abort(struct mk_request *req);

/* Whole answers: what was queued before is dropped. Each ends the response; one that has ended stays as it is. */
MK_API void mk_response_error(struct mk_request *req, int status);
/* `location` is a URI reference, percent-encoded already. */
MK_API void mk_response_redirect(struct mk_request *req, int status, struct mk_str location);
/* 405, or 204 for OPTIONS: with this Allow field. */
MK_API void mk_response_method_not_allowed(struct mk_request *req, struct mk_str methods);

/* Is the response the server's own page for its status, which a host may replace? */
MK_API bool mk_response_is_default_error(const struct mk_request *req);
/*
 * Puts another body in the place of what is queued, without the filters and the Content-Encoding of the old one;
 * only before the head leaves, as in on_response. Both must live as long as `req`. 0, -EALREADY, -ENOMEM.
 */
MK_API int mk_response_replace(struct mk_request *req, struct mk_str type, struct mk_str body);

/*
 * A filter changes a body on its way out: it is asked for bytes, and reads those of the body below it.
 *
 *     the handler's parts ─► first filter ─► ... ─► last filter ─► framing
 *
 * Asked for up to `size` bytes (1,024 at least) at `to`, it returns the count, 0 for the end (after that of what
 * is below), or what mk_filter_read() returned below zero; -EAGAIN of its own wants a mk_response_wake() later. It
 * is not called where no body is sent (HEAD, 304 ...).
 */
struct mk_filter;
typedef ssize_t (*mk_filter_fn)(struct mk_filter *filter, char *to, size_t size, void *ctx);

/*
 * Only before the head leaves, as in on_response. The length of the body is unknown from now on, unless the
 * filter announces it anew. 0, -EALREADY, -ENOMEM. Builds for small devices leave filters out.
 */
MK_API int mk_response_filter(struct mk_request *req, mk_filter_fn fn, void *ctx);
/*
 * The next bytes of what is below: the count, 0 for the end. -EAGAIN: there are none yet, pass on what you hold
 * back. -EBUSY: others have their turn first; return it, you will be asked again. Another -errno: the body
 * cannot be completed.
 */
MK_API ssize_t mk_filter_read(struct mk_filter *filter, char *to, size_t size);
MK_API struct mk_request *mk_filter_request(const struct mk_filter *filter);

/* An open regular file, as a handler found it. */
struct mk_file {
    int fd;                /* taken; not looked at where the content is at hand */
    struct mk_str content; /* all of its bytes, or `.p` is NULL; live as long as the exchange */
    uint64_t bytes;
    int64_t mtime_seconds;
    uint32_t mtime_nanoseconds;
    struct mk_str type;    /* Content-Type; lives as long as the exchange */
    enum mk_coding coding; /* Content-Encoding; its name ends the entity tag: variants are not the same bytes */
    bool no_ranges;
    bool in_memory; /* on a file system without a disk behind it: reading never waits */
};

/*
 * Answers GET and HEAD with a file: validators, preconditions in the order of RFC 9110 section 13.2.2, and
 * ranges (section 14) are all done here. Ends the response.
 */
MK_API void mk_response_file(struct mk_request *req, const struct mk_file *file);

/* The type of a file by its name, as configured; with a charset where it is text. Lives as long as `req`. */
MK_API struct mk_str mk_request_mime(const struct mk_request *req, struct mk_str path);

#endif
