// SPDX-License-Identifier: Apache-2.0
/*
 * An exchange: one request and its response, on HTTP/1 and HTTP/2 alike.
 *
 * Thread: an exchange belongs to one worker. Call these functions from that worker's thread only; for other threads
 * see <monkey/request_ref.h>. No function here blocks.
 *
 * Lifetime: an exchange begins when the request's head is complete. It ends when the kernel has taken the whole
 * response, or when the connection or stream is closed before that. Register a clean-up for its end with
 * `mk_arena_defer(mk_request_arena(req), ...)`.
 *
 * Strings: where nothing else is said, a string that a function returns is valid until the callback returns, because
 * the request's head may move in memory between two callbacks. Copy it with `mk_arena_dup()` to keep it.
 *
 * Time: a handler may send the response before it returns, or later from another callback in the same worker (a timer,
 * a job, a message). In the second case it returns 0 and calls `mk_response_end()` when the response is complete. If
 * it does not begin a response within HandlerTimeout, the server sends 503. A response that has begun and then adds
 * nothing for HandlerTimeout is cut: the connection is closed or the stream reset, and mk_request_aborted() is true.
 * mk_request_wait() sets another time for one exchange.
 */
#ifndef MONKEY_REQUEST_H
#define MONKEY_REQUEST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/address.h"
#include "base/arena.h"
#include "base/header_id.h"
#include "base/str.h"
#include "log.h"
#include "loop.h"
#include "status.h"

MK_C_BEGIN

struct mk_buf;
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

/* ── the request (RFC 9110); after a head that could not be read (on_response, on_done) strings may be empty ── */

/* Returns the method; MK_METHOD_OTHER for one that is not in the list, see mk_request_method_name(). */
MK_API enum mk_method mk_request_method(const struct mk_request *req);
/* Returns the method as the client sent it, in its case of letters (RFC 9110 section 9.1). */
MK_API struct mk_str mk_request_method_name(const struct mk_request *req);

/* Returns the request target as the client sent it, not decoded. */
MK_API struct mk_str mk_request_target(const struct mk_request *req);
/*
 * Returns the path of the target as the client sent it, neither decoded nor normalized nor rewritten: "/" if the target
 * has none, "" for CONNECT and OPTIONS *.
 */
MK_API struct mk_str mk_request_raw_path(const struct mk_request *req);
/*
 * Returns the path, percent-decoded once and normalized. It begins with "/", except "*" for OPTIONS * and "" for
 * CONNECT. It ends with a NUL and is valid until the exchange ends. After mk_request_rewrite() it is the new path.
 */
MK_API struct mk_str mk_request_path(const struct mk_request *req);
/* What becomes of a path with an encoded slash ("%2F" in a segment). */
enum mk_encoded_slash {
    MK_ENCODED_SLASH_REFUSE, /* 404 */
    MK_ENCODED_SLASH_KEEP,   /* it stays "%2F" in the path that all hooks see */
    MK_ENCODED_SLASH_DECODE, /* it is a slash as any other, for rules and logins, too */
};

/*
 * Returns true if the path has an encoded slash, for a plugin that accepts such paths (<monkey/hooks.h>). Each "%2F"
 * in mk_request_path() is one then; in all other paths it is text.
 */
MK_API bool mk_request_has_encoded_slash(const struct mk_request *req);
/*
 * Returns what follows the "?", not decoded; `.p` is NULL if the target has no "?". After mk_request_rewrite() it is
 * the new query.
 */
MK_API struct mk_str mk_request_query(const struct mk_request *req);
/*
 * Returns the path as the client asked for it, decoded as that of mk_request_path(), whether or not the request was
 * rewritten.
 */
MK_API struct mk_str mk_request_original_path(const struct mk_request *req);
/*
 * Returns path and query with a slash after the path, as the location of a redirect to a folder. It is percent-encoded
 * and valid until the exchange ends; `.p` is NULL without memory.
 */
MK_API struct mk_str mk_request_add_slash(struct mk_request *req);
/* Returns the host that the client asked for: without a port, an IPv6 address in brackets; may be empty. */
MK_API struct mk_str mk_request_host(const struct mk_request *req);
/* Return the HTTP version: major 1 and minor 0 or 1, or major 2 and minor 0. */
MK_API unsigned mk_request_major(const struct mk_request *req);
MK_API unsigned mk_request_minor(const struct mk_request *req);

/*
 * Return the value of a request header; `.p` is NULL if the request does not have it. Values of several lines are
 * joined by ", " (RFC 9110 section 5.3), those of Cookie by "; " (RFC 9113 section 8.2.3); without memory for that,
 * the first ones are returned. Names are compared without regard to case. Joined values are valid until the exchange
 * ends. mk_request_header() with MK_HEADER_OTHER finds nothing.
 */
MK_API struct mk_str mk_request_header(struct mk_request *req, enum mk_header_id field);
MK_API struct mk_str mk_request_header_by_name(struct mk_request *req, struct mk_str name);
/* Gets the n-th header line, from 0. Returns false if there are not that many. */
MK_API bool mk_request_header_at(const struct mk_request *req, unsigned n, struct mk_str *ret_name,
                                 struct mk_str *ret_value);

struct mk_header_field {
    struct mk_str name, value;
};

/* Returns true if both names are the same in any case of letters, and with `_` as `-`, as many backends read them. */
MK_API bool mk_header_same_name(struct mk_str a, struct mk_str b);
/* Returns whether a name has letters, digits, dashes and underscores only: no registered name of a header has others.
 */
static inline bool mk_header_is_plain(struct mk_str name)
{
    return mk_str_is_name(name, "-_");
}
/*
 * Returns true for headers of requests that no plugin sets: Host, and those about the end of the request and its
 * connection (Content-Length, Transfer-Encoding, TE, Trailer, Expect, Connection, Keep-Alive, Proxy-Connection,
 * Upgrade, HTTP2-Settings).
 */
MK_API bool mk_request_header_reserved(struct mk_str name);
/*
 * Replaces headers of the request, for what an access hook knows of the user: removes all lines whose names are the
 * same as one of `headers` (mk_header_same_name()), and adds those with a value; `.p` NULL: the header is only removed.
 * The hooks that are called later find the new lines, after the others. Copies names and values. Strings that other
 * functions have returned stay valid as they say.
 * Returns 0 or, with nothing changed, -EINVAL (a name is reserved or not a token, or a value has control bytes),
 * -ENOBUFS (the head would have more than 64 KB) or -ENOMEM.
 */
MK_API int mk_request_replace_headers(struct mk_request *req, const struct mk_header_field *headers, unsigned n);

/* ── the connection, the client, times and sizes ── */

/*
 * Returns the address of the other end of the connection: of the client, or of a proxy. It is AF_UNSPEC if the system
 * does not know it: after a PROXY header it is read anew by each call, and is unknown once the proxy has reset the
 * connection.
 */
MK_API struct mk_address mk_request_peer(struct mk_request *req);
/*
 * Returns the address of the client. That is the peer's, unless the peer is in TrustedProxies: then the address in its
 * PROXY header, and after that the one in the header that RealIPHeader names. Does not change during an exchange.
 */
MK_API struct mk_address mk_request_client(struct mk_request *req);
/* Returns "https" if the client uses TLS, with this server or with a trusted proxy, else "http". A literal. */
MK_API struct mk_str mk_request_scheme(struct mk_request *req);

/* Returns the request's connection, for the plugin that provides its transport; see <monkey/transport.h>. */
MK_API const struct mk_io *mk_request_io(const struct mk_request *req);
/*
 * Describes the TLS session of the connection. The strings are valid until the callback returns.
 * Returns 0, or -ENOENT (the connection is not encrypted; `*ret` is empty then).
 */
MK_API int mk_request_tls_info(const struct mk_request *req, struct mk_tls_info *ret);

/*
 * Writes a line to the error log as mk_log(), and after the message whose request it was: ", peer: 192.0.2.7,
 * listener: 0.0.0.0:443, host: example.org". The message is cut at 559 bytes. Of each format and host a few lines are
 * written in ten seconds, and the others counted (mk_log_limited()).
 */
MK_API void mk_request_log(struct mk_request *req, enum mk_log_level level, const char *format, ...) MK_PRINTF(3, 4);
/*
 * The same for text of an application, of which more than four lines are of use: lines of each format and host may have
 * MK_LOG_LIMITED_BYTES in ten seconds.
 */
MK_API void mk_request_log_text(struct mk_request *req, enum mk_log_level level, const char *format, ...)
    MK_PRINTF(3, 4);
/* The same without a limit, for a caller that has another one. */
MK_API void mk_request_log_all(struct mk_request *req, enum mk_log_level level, const char *format, ...)
    MK_PRINTF(3, 4);

/* Sets the name of the authenticated user, for an access hook; copies it. Returns 0 or -ENOMEM. */
MK_API int mk_request_set_user(struct mk_request *req, struct mk_str name);
/*
 * Returns the name that mk_request_set_user() set last; `.p` is NULL if it was not called. Valid until the exchange
 * ends.
 */
MK_API struct mk_str mk_request_user(const struct mk_request *req);

/*
 * Sets what a verified token says of the user, for an access hook: a JSON object (RFC 7519), which is copied.
 * Returns 0 or -ENOMEM.
 */
MK_API int mk_request_set_claims(struct mk_request *req, struct mk_str json);
/* Returns the claims that were set last; `.p` is NULL if there are none. Valid until the exchange ends. */
MK_API struct mk_str mk_request_claims(const struct mk_request *req);

/*
 * Access by rules for addresses, and by login. They are in two plugins, of which the second may accept a login in place
 * of an address (`Satisfy any` of [AUTH]). For each request:
 *
 *     on_head     of the plugin with the logins:  mk_request_defer_denial(), if a login would do
 *     on_request  of the plugin with the rules:   mk_request_allow(), or `return mk_request_deny(req, 403);`
 *     on_request  of the plugin with the logins:  reads mk_request_access(), and asks for a login or sends the denial
 *
 * Only denials that a login may replace are passed to mk_request_deny(); a rate limit sends its response itself. If the
 * logins come first in plugins.load, the second of them sees no decision and asks for the login.
 *
 * In allows_path (<monkey/hooks.h>) they are about the path that is asked for: all denials are deferred, and one that
 * mk_request_allow() does not replace refuses the path.
 */

/* A rule allows the request. Replaced by a later call of this function or the next. */
MK_API void mk_request_allow(struct mk_request *req);
/*
 * A rule denies the request with a status from 400 to 599: sends the server's page for it, unless the denial was
 * deferred.
 * Returns what on_head or on_request returns then: 0, or MK_DECLINED (deferred).
 */
MK_API int mk_request_deny(struct mk_request *req, int status);
/* Has the next mk_request_deny() of this exchange send nothing. The caller must call mk_request_access() afterwards. */
MK_API void mk_request_defer_denial(struct mk_request *req);
/* Returns 1 (allowed by a rule), the status of a denial that was deferred, or 0 (no rule has decided). */
MK_API int mk_request_access(const struct mk_request *req);

/*
 * Returns the request ID: the value of X-Request-Id if that is 1 to 128 letters, digits and -_.:/+=@, else 32 random
 * hexadecimal digits. Valid until the exchange ends, and the same in every call; `.p` is NULL without memory.
 */
MK_API struct mk_str mk_request_id(struct mk_request *req);

/*
 * Return when the first byte of the request was read, and when the first byte of the response was ready, in
 * microseconds as mk_loop_now_us(). Return 0 before that, or if no loaded plugin has the flag MK_PLUGIN_TIMES.
 */
MK_API uint64_t mk_request_began_us(const struct mk_request *req);
MK_API uint64_t mk_response_began_us(const struct mk_request *req);

/* Returns the bytes of the request so far, head and body. */
MK_API uint64_t mk_request_bytes_received(const struct mk_request *req);
/* Return the bytes of the heads alone. For the body of the response: mk_request_bytes_sent(), <monkey/plugin.h>. */
MK_API uint64_t mk_request_head_bytes(const struct mk_request *req);
MK_API uint64_t mk_response_head_bytes(const struct mk_request *req);

enum { MK_NOTES_MAX = 16, MK_NOTE_BYTES_MAX = 1024 };
/*
 * Notes a value for the log, or for other plugins: `$note_NAME` in the formats of the plugin logger. A second note of
 * the name replaces the first. `name` (letters, digits and "_") must be a literal or valid until the exchange ends;
 * `value` is copied.
 * Returns 0, -EINVAL (no name), -EMSGSIZE (a value of more than MK_NOTE_BYTES_MAX bytes), -ENOBUFS (MK_NOTES_MAX other
 * names already) or -ENOMEM.
 */
MK_API int mk_request_note(struct mk_request *req, struct mk_str name, struct mk_str value);
/* Returns the value of a note; `.p` is NULL if there is none. Valid until it is replaced or the exchange ends. */
MK_API struct mk_str mk_request_get_note(const struct mk_request *req, struct mk_str name);

/* Why the server itself refuses a request for a file, or with a body. */
enum mk_reason {
    MK_REASON_NONE,
    MK_REASON_MISSING,        /* there is nothing of that name */
    MK_REASON_HIDDEN,         /* DotFiles */
    MK_REASON_LINK,           /* SymLink Off */
    MK_REASON_LINK_OUTSIDE,   /* SymLink Inside */
    MK_REASON_LINK_CIRCLE,    /* links of links */
    MK_REASON_NO_INDEX,       /* a folder without a file of Indexfile */
    MK_REASON_NO_FILE,        /* a device and the like */
    MK_REASON_SOURCE,         /* a program of another section */
    MK_REASON_NAME_TOO_LONG,  /* for the file system */
    MK_REASON_PERMISSION,     /* of the file, or of a folder above it */
    MK_REASON_METHOD,         /* neither GET nor HEAD for a file */
    MK_REASON_BODY,           /* MaxBodySize */
    MK_REASON_COLLECTED_BODY, /* MaxRequestSize */
    MK_REASON_ENCODED_SLASH,  /* EncodedSlash */
    MK_REASON_COUNT,
};

/* A row of the table of reasons. */
struct mk_reason_info {
    const char *name;   /* for `$reason` of the plugin logger; NULL: no reason */
    const char *advice; /* the cause, and what to write, for the error log; NULL: nothing is to be done */
    uint16_t status;    /* of such a response */
};

/* Returns the row of a reason. Any thread. */
MK_API const struct mk_reason_info *mk_reason_info(enum mk_reason reason);
/* Sets the reason for which the request will be refused unless another plugin responds; a later one replaces it. */
MK_API void mk_request_set_reason(struct mk_request *req, enum mk_reason reason);
/* Returns the reason; MK_REASON_NONE if there is none, or the status of the response is not that of its row. */
MK_API enum mk_reason mk_request_reason(const struct mk_request *req);

enum { MK_REQUEST_WAIT_MAX_MS = 86400000 };
/*
 * Sets how long the exchange may wait for its handler, in place of HandlerTimeout: for the response to begin, counted
 * from this call, and then whenever the response adds nothing. A further call sets another time, and begins anew.
 * Returns 0, -EINVAL (0, or more than MK_REQUEST_WAIT_MAX_MS) or -ENOMEM.
 */
MK_API int mk_request_wait(struct mk_request *req, uint32_t ms);

/* ── content codings (RFC 9110 section 12.5.3) ── */

enum mk_coding { MK_CODING_IDENTITY, MK_CODING_GZIP, MK_CODING_BR, MK_CODING_ZSTD, MK_CODING_COUNT };

/* The weight of each coding in thousandths; 0: not acceptable. */
struct mk_accept {
    uint16_t weight[MK_CODING_COUNT];
};

/* Returns the name of a coding as Content-Encoding has it; a literal. */
MK_API struct mk_str mk_coding_name(enum mk_coding coding);
/*
 * Reads the value of Accept-Encoding. An absent (`.p` NULL) or malformed one accepts identity only. Identity, if the
 * value does not mention it, gets the lowest weight of those that are accepted.
 */
MK_API void mk_accept_encoding(struct mk_str value, struct mk_accept *ret);
/*
 * Finds the coding with the highest weight among the `n` codings `offered` (of enum mk_coding; among equals the first)
 * and removes it from `accept`, so that the next call finds the second choice. Returns false if none is left whose
 * weight is at least that of identity.
 */
MK_API bool mk_accept_next(struct mk_accept *accept, const uint8_t *offered, unsigned n, enum mk_coding *ret);

/* ── memory and loop ── */

/* Returns the arena of the exchange: what is allocated there is freed when the exchange ends. */
MK_API struct mk_arena *mk_request_arena(struct mk_request *req);
/* Returns the loop of the worker. */
MK_API struct mk_loop *mk_request_loop(const struct mk_request *req);
/*
 * Returns a number that changes with each turn of the loop, and within a turn with each read of input that a client may
 * have sent during it. So what a plugin has looked at since the number has changed is newer than the requests of all
 * clients that wait for no other response.
 */
MK_API uint64_t mk_request_arrival(const struct mk_request *req);
/* Returns the account of the worker, for memory that must outlive the exchange. It outlives all jobs. */
MK_API struct mk_account *mk_request_account(const struct mk_request *req);

/* ── the request's body ── */

/*
 * Receives a piece of the body, which is valid during the call. `end` is true exactly once: with the last piece, or
 * with an empty one after it. If the client fails first, `end` never comes: the exchange ends instead.
 */
typedef void (*mk_body_fn)(struct mk_request *req, struct mk_str piece, bool end, void *ctx);

/*
 * Passes the body to `fn` in pieces as they arrive; sends "100 Continue" to a client that waits for it. If the body
 * has ended already, calls `fn` at once with an empty last piece. If it could not be read, `fn` is never called. A
 * second call replaces `fn` and `ctx` for the pieces that follow; those before it are not repeated.
 */
MK_API void mk_request_read(struct mk_request *req, mk_body_fn fn, void *ctx);
/*
 * Moves the next bytes of the body, at most `size`, from the socket `fd` of the client, as splice(2) does.
 * Returns their count, 0 (the client has ended its side), -EAGAIN (none have come; it is called again when they do),
 * -EBUSY (they cannot be taken now; it has called mk_request_pause()), -EOPNOTSUPP (it is not called again: mk_body_fn
 * gets the bytes from here on) or another -errno (the connection of the client has failed).
 */
typedef ssize_t (*mk_body_splice_fn)(struct mk_request *req, int fd, size_t size, void *ctx);
/*
 * As mk_request_read(), for bytes that go to a socket. Where they come as they are, on HTTP/1 without TLS and chunks,
 * `splice` is called in place of `fn`, which gets what has come with the head, and the end as an empty piece. The
 * socket is the server's: non-blocking, and only for bytes of this body.
 */
MK_API void mk_request_splice(struct mk_request *req, mk_body_fn fn, mk_body_splice_fn splice, void *ctx);
/*
 * Ends the exchange when the client ends its side of the connection (HTTP/1) while the exchange waits for its handler,
 * for one whose work is of no use without the client. By default it continues, because a client may end its side
 * after its last request and still read; one that has done so before the handler was called is served in any case.
 * A client that resets the connection or the stream always ends the exchange.
 */
MK_API void mk_request_end_with_client(struct mk_request *req);

/*
 * Gets the length of the body: 0 without one. Returns false for a body whose length is not known before its end: in
 * chunks, or over HTTP/2 without Content-Length.
 */
MK_API bool mk_request_body_length(const struct mk_request *req, uint64_t *ret_bytes);

enum { MK_REQUEST_TRAILERS_MAX = 64, MK_REQUEST_TRAILER_BYTES_MAX = 8192 };
/*
 * Has the trailers of the request kept (RFC 9110 section 6.5), which are dropped otherwise. Call it in the hook that
 * takes the request, before mk_request_read(). A request with more trailers, or larger ones, is rejected as one with a
 * body that is too long: 413, or an abort if the head of a response was sent.
 * Returns 0, -EALREADY (they have arrived and were dropped) or -ENOMEM.
 */
MK_API int mk_request_keep_trailers(struct mk_request *req);
/*
 * Gets the n-th trailer, from 0, after the end of the body; valid until the exchange ends. Those that no trailer can be
 * are left out: the names of mk_response_header_reserved(). The others must not be used as headers, which plugins may
 * have checked. Returns false if there are not that many.
 */
MK_API bool mk_request_trailer_at(const struct mk_request *req, unsigned n, struct mk_str *ret_name,
                                  struct mk_str *ret_value);
/* Stops reading the body until mk_request_resume(), so that flow control stops the client. */
MK_API void mk_request_pause(struct mk_request *req);
/* Ends mk_request_pause(): further pieces come in later calls, never within this one. Without a pause: no effect. */
MK_API void mk_request_resume(struct mk_request *req);

/*
 * Collects the whole body and passes it to `fn` in one call, with a NUL after it. It is valid until the exchange
 * ends. A body of more than `bytes_max` bytes (0: MaxRequestSize; never more than MaxBodySize) gets 413, and one for
 * which there is no memory 503; then `fn` is not called.
 */
MK_API void mk_request_collect(struct mk_request *req, size_t bytes_max, mk_body_fn fn, void *ctx);

/* ── the response: status and headers, until its head is sent ── */

/*
 * Sets the status; without this call it is 200. Those from 600 on have no meaning, but other servers send them.
 * Returns 0, -EINVAL (`status` is not from 200 to 999) or -EALREADY (the head was sent).
 */
MK_API int mk_response_set_status(struct mk_request *req, int status);
/* Returns the status that is set now: 200 at first. */
MK_API int mk_response_get_status(const struct mk_request *req);
/* Returns whether the head was sent: status and headers cannot change any more. */
MK_API bool mk_response_head_sent(const struct mk_request *req);

/*
 * Adds a header. Copies the value; the name must be a literal or valid until the exchange ends. A head that is too long
 * is not sent: over HTTP/1 one of more than 32 KB, with the lines of the server, becomes a 500, which is logged; over
 * HTTP/2 the stream is reset above 64 KB.
 * Returns 0, -EALREADY (the head was sent), -EINVAL (the name is not a token or is reserved for the server, see
 * mk_response_header_reserved(), or the value has control bytes, which could begin a new line) or -ENOMEM (no memory,
 * or 128 headers already).
 */
MK_API int mk_response_header(struct mk_request *req, struct mk_str name, struct mk_str value);
/*
 * Adds a header without a copy: the value, too, must be valid until the exchange ends.
 * Returns as mk_response_header(): 0, -EALREADY, -EINVAL or -ENOMEM.
 */
MK_API int mk_response_header_ref(struct mk_request *req, struct mk_str name, struct mk_str value);
/*
 * Adds a header that a parser of the library has accepted, as it is, and whose name is not reserved for the server: it
 * is not checked again. Both strings must be valid until the exchange ends. Returns 0, -EALREADY or -ENOMEM.
 */
MK_API int mk_response_header_parsed(struct mk_request *req, struct mk_str name, struct mk_str value);
/*
 * Adds a header with a date (RFC 9110 section 5.6.7) in seconds since 1970, as mk_loop_wall_seconds() returns.
 * Returns as mk_response_header(): 0, -EALREADY, -EINVAL or -ENOMEM.
 */
MK_API int mk_response_header_date(struct mk_request *req, struct mk_str name, int64_t seconds);
/*
 * Appends such a date, for a value that has more in it: `Sun, 06 Nov 1994 08:49:37 GMT`, in every locale. Seconds
 * outside the years 0000 to 9999 are moved to the nearest end of them. Any thread.
 */
MK_API void mk_date_write(struct mk_buf *out, int64_t seconds);
/*
 * Sends the Date of an origin in place of the server's (RFC 9110 section 6.6.1), for a response that a backend has
 * made. Copies it; mk_response_error() and other complete responses replace it again. Server stays the server's.
 * Returns 0, -EALREADY (the head was sent), -EINVAL (not a date of RFC 9110 section 5.6.7) or -ENOMEM.
 */
MK_API int mk_response_set_date(struct mk_request *req, struct mk_str date);
/*
 * Returns true for headers that only the server sets: Connection, Content-Length (see mk_response_set_length()), Date,
 * Keep-Alive, Server and Transfer-Encoding.
 */
MK_API bool mk_response_header_reserved(struct mk_str name);
/*
 * Returns the value of the first header of that name that was added, in any case of letters; `.p` is NULL if there is
 * none. Does not find the headers that only the server sets. Valid until the exchange ends.
 */
MK_API struct mk_str mk_response_get_header(const struct mk_request *req, struct mk_str name);
/*
 * Gets the n-th header that was added, from 0; valid until the exchange ends. Returns false if there are not that many.
 */
MK_API bool mk_response_header_at(const struct mk_request *req, unsigned n, struct mk_str *ret_name,
                                  struct mk_str *ret_value);
/* Removes all headers of that name. Has no effect on a head that was sent. */
MK_API void mk_response_header_remove(struct mk_request *req, struct mk_str name);

/*
 * Announces the length of the body, for a body that is not completely queued when the head is sent. A body that turns
 * out shorter or longer is an error: the connection or stream is cut.
 * Returns 0 or -EALREADY (the head was sent).
 */
MK_API int mk_response_set_length(struct mk_request *req, uint64_t bytes);
/*
 * Gets the length of the body. Returns false if it is not known yet: it was not announced, and the response has not
 * ended, has a generator, a filter or trailers.
 */
MK_API bool mk_response_get_length(const struct mk_request *req, uint64_t *ret_bytes);

/* Closes the connection after this response. Has no effect once the head was sent. */
MK_API void mk_response_close_connection(struct mk_request *req);

/* ── interim responses (RFC 9110 section 15.2), until the head is sent ── */

enum { MK_INTERIM_FIELDS_MAX = 64, MK_INTERIM_BYTES_MAX = 16384 };
/*
 * Sends an interim response at once, before the response: a status from 100 to 199, but not 101, with `n` fields, which
 * are copied. May be called several times. To an HTTP/1.0 client nothing is sent, nor a 100 (Continue) to a client
 * that does not wait for it or has got one: a proxy may pass on each that it receives. HandlerTimeout is not extended.
 * Returns 0, -EINVAL (the status, or a field that mk_response_header() would refuse), -EALREADY (the head is sent, or
 * the response has ended), -ENOBUFS (more than MK_INTERIM_FIELDS_MAX fields; or the client has not taken the ones
 * before, and more than MK_INTERIM_BYTES_MAX bytes would wait) or -ENOMEM.
 */
MK_API int mk_response_interim(struct mk_request *req, int status, const struct mk_header_field *fields, unsigned n);
/* Returns true if the client waits for a 100 before it sends its body (RFC 9110 section 10.1.1), and has got none. */
MK_API bool mk_request_expects_continue(const struct mk_request *req);
/*
 * Has mk_request_read() not send the 100 by itself: the handler sends it by mk_response_interim(), when a backend has
 * sent one. Call it before mk_request_read(), which passes a body on that comes without waiting for the 100. While the
 * client waits for it, HandlerTimeout applies. Without it, a connection of HTTP/1 ends after the response.
 */
MK_API void mk_request_hold_continue(struct mk_request *req);

/* ── the response: body ── */

/*
 * The body is a queue of parts, which are sent in order. The functions that add a part, mk_response_write() to
 * mk_response_splice(), do not send anything themselves.
 * They return 0, MK_AGAIN (the part was added, and more than 64 KB wait now: add the next one in the callback of
 * mk_response_on_writable()), -EALREADY (the response has ended, perhaps by a timeout; there is nothing left to do) or
 * -ENOMEM (the body is incomplete: call mk_response_abort()).
 */

/* Adds bytes, which it copies. No bytes: returns 0 and adds nothing. */
MK_API int mk_response_write(struct mk_request *req, struct mk_str data);
/* Adds bytes without a copy: they must be valid, and must not change, until the exchange ends. */
MK_API int mk_response_write_ref(struct mk_request *req, struct mk_str data);
/*
 * Adds `length` bytes of an open regular file. Takes `fd` over in any case: it is closed after the part was sent, or at
 * once if the part is empty or cannot be added.
 */
MK_API int mk_response_write_file(struct mk_request *req, int fd, uint64_t offset, uint64_t length);

/*
 * Writes the next bytes of a part, at most `size`, to `to`. Is called when the client can take bytes.
 * Returns their count, 0 (the part ends), -EAGAIN (no bytes now: call it again after mk_response_wake()) or another
 * -errno (the response is aborted).
 */
typedef ssize_t (*mk_generate_fn)(struct mk_request *req, char *to, size_t size, void *ctx);
/* Adds a part whose bytes `fn` generates. `fn` is called later, never by this function, and not for HEAD, 304 ... */
MK_API int mk_response_generate(struct mk_request *req, mk_generate_fn fn, void *ctx);
/*
 * Moves the next bytes of a part, at most `size`, to the socket `fd` of the client, as splice(2) does.
 * Returns their count, 0 (the part ends), -EAGAIN (no bytes now: call it again after mk_response_wake()), -EBUSY (the
 * client takes no more now: it is called again when the client does), -EPIPE (the connection of the client has failed),
 * -EOPNOTSUPP (it is not called again: the generator has the bytes from here on) or another -errno (the response is
 * aborted).
 */
typedef ssize_t (*mk_splice_fn)(struct mk_request *req, int fd, size_t size, void *ctx);
/*
 * As mk_response_generate(), for bytes that come from a socket. Where they go to the client as they are, `splice` is
 * called in place of `fn`: on HTTP/1 without TLS, filters and chunks. All that was queued before is sent then. The
 * socket is the server's: non-blocking, and only for bytes of this part.
 */
MK_API int mk_response_splice(struct mk_request *req, mk_generate_fn fn, mk_splice_fn splice, void *ctx);
/*
 * Continues a response whose generator or filter has returned -EAGAIN: it is called again in this turn of the loop or
 * the next, not by this function. Does nothing if none waits. The exchange must not be over: see
 * <monkey/request_ref.h> for other threads and mk_arena_defer() to learn of the end.
 */
MK_API void mk_response_wake(struct mk_request *req);

/* Is called when all queued parts have been sent after a function above returned MK_AGAIN. */
typedef void (*mk_writable_fn)(struct mk_request *req, void *ctx);
/* Sets that callback, one for each exchange. */
MK_API void mk_response_on_writable(struct mk_request *req, mk_writable_fn fn, void *ctx);

/*
 * Adds a trailer, a header after the body (RFC 9110 section 6.5), for a value that is known only then. May be called
 * until the last byte of the body was taken, for example by the generator that ends it. Copies the value; name and
 * value are as for mk_response_header(), and the definition of the header must allow trailers. Trailers are left out on
 * HTTP/1.0, on HTTP/1.1 with an announced length, and without a body; many clients ignore them.
 * Returns 0, -EALREADY (all of the body was taken), -EINVAL or -ENOMEM (no memory, or 16 trailers already).
 */
MK_API int mk_response_trailer(struct mk_request *req, struct mk_str name, struct mk_str value);

/* Completes the response: no part can be added. `req` may be gone when the callback that called this returns. */
MK_API void mk_response_end(struct mk_request *req);
/* Cuts the connection (HTTP/1) or the stream (HTTP/2), so that the client sees that the response is incomplete. */
MK_API void mk_response_abort(struct mk_request *req);

/* ── complete responses ── */

/*
 * Each of these three replaces status, headers and parts, and ends the response. One that has ended stays as it is;
 * one whose head was sent is aborted.
 */

/*
 * Sends the server's page, or the host's, for that status, which must be from 200 to 599 (an assertion). 204, 205 and
 * 304 have no page (RFC 9110 section 15).
 */
MK_API void mk_response_error(struct mk_request *req, int status);
/*
 * Redirects with a status of 301, 302, 303, 307 or 308 (RFC 9110 section 15.4), which is not checked. `location` is a
 * URI reference, percent-encoded; it is copied. Sends 500 without memory, or if `location` has control bytes.
 */
MK_API void mk_response_redirect(struct mk_request *req, int status, struct mk_str location);
/*
 * Redirects to a folder: to the path with a slash after it, without which relative links would be wrong. `status` as
 * that of mk_response_redirect(), or 0: 301, and 308 for methods other than GET and HEAD, which keep their body (RFC
 * 9110 section 15.4.9). Sends 503 or 500 without memory.
 */
static inline void mk_response_redirect_to_slash(struct mk_request *req, int status)
{
    enum mk_method method = mk_request_method(req);
    struct mk_str location = mk_request_add_slash(req);
    if (!status)
        status = method == MK_GET || method == MK_HEAD ? 301 : 308;
    if (location.p)
        mk_response_redirect(req, status, location);
    else
        mk_response_error(req, 503);
}
/*
 * Sends 405, or 204 for OPTIONS, with `methods` ("GET, HEAD") as Allow; it is copied. Sends 500 without memory, or if
 * `methods` has control bytes.
 */
MK_API void mk_response_method_not_allowed(struct mk_request *req, struct mk_str methods);

/* Returns true if the body is the server's page for the status, which on_response may replace. */
MK_API bool mk_response_is_default_error(const struct mk_request *req);
/*
 * Replaces the body and its Content-Type, for on_response. Removes filters, trailers and Content-Encoding of the old
 * one. Both strings must be valid until the exchange ends.
 * Returns 0, -EALREADY (the head was sent, or the response has failed), -EINVAL (`type` has control bytes) or -ENOMEM
 * (no memory, or 128 headers already). After the last two the old body is gone.
 */
MK_API int mk_response_replace(struct mk_request *req, struct mk_str type, struct mk_str body);

/*
 * Refuses ranges (RFC 9110 section 14), for a body that exists as a whole only: mk_response_file() ignores Range, and
 * Accept-Ranges is left out. In a hook before the response or in on_response; there a 206 or 416 of mk_response_file()
 * becomes the 200 with the whole file, whose headers stay as on_response of others has changed them. Filters that were
 * added to a 206 get the bytes of the whole file, and the length is unknown again; those of a 416 are removed.
 * Returns 0, -EALREADY (the head was sent, or the response has failed), -ENOTSUP (a handler has made the 206 itself:
 * the body is a part of another one) or -ENOMEM (503 is sent instead).
 */
MK_API int mk_response_no_ranges(struct mk_request *req);
/*
 * Asks for a body without a content coding (RFC 9110 section 8.4), for a plugin whose filter reads it: no precompressed
 * variant is sent, and Accept-Encoding is not passed on. In a hook before the response. Hooks that are called later,
 * such as that of `compress`, may encode what the filter has written; and a handler may have encoded the body all the
 * same: a filter looks at Content-Encoding.
 */
MK_API void mk_response_no_codings(struct mk_request *req);
/*
 * Tells whether a handler that asks another server passes this header of the request on, as far as hooks have a say:
 * not Accept-Encoding after mk_response_no_codings(), nor Range and If-Range after mk_response_no_ranges().
 */
MK_API bool mk_request_passes_header(const struct mk_request *req, struct mk_str name);

/* The least room that a filter is given, and that it must give to what is below it. */
enum { MK_FILTER_BYTES_MIN = 1024 };

/*
 * A filter changes a body on its way out: it is called for bytes, and reads the bytes below it.
 *
 *     the handler's parts ─► first filter ─► ... ─► last filter ─► framing
 *
 * It writes up to `size` bytes (MK_FILTER_BYTES_MIN at least) to `to`. It is not called where no body is sent (HEAD,
 * 304 ...), and not after its end.
 * Returns their count, 0 (the end; only after the end of what is below), an error of mk_filter_read(), or -EAGAIN of
 * its own: it has none now, and calls mk_response_wake() when it has, or the response is cut after HandlerTimeout.
 * Until then it may be called again at any time, for example because the handler adds a part, and returns -EAGAIN
 * again.
 */
struct mk_filter;
typedef ssize_t (*mk_filter_fn)(struct mk_filter *filter, char *to, size_t size, void *ctx);

/*
 * Adds a filter, for on_response. The length of the body is unknown afterwards, unless the filter announces it with
 * mk_response_set_length().
 * Returns 0, -EALREADY (the head was sent) or -ENOMEM.
 */
MK_API int mk_response_filter(struct mk_request *req, mk_filter_fn fn, void *ctx);
/*
 * Reads the next bytes from below the filter; `size` is MK_FILTER_BYTES_MIN at least (an assertion).
 * Returns their count, 0 (the end, also of further calls), -EAGAIN (none yet), -EBUSY (other connections have their
 * turn first) or another -errno (the body cannot be completed).
 *
 * After -EAGAIN the filter returns bytes that it holds back, since the client may wait for them, or else -EAGAIN. After
 * -EBUSY it returns bytes or -EBUSY. In both cases it is called again without mk_response_wake().
 */
MK_API ssize_t mk_filter_read(struct mk_filter *filter, char *to, size_t size);
/* Returns the request whose response the filter changes; valid until the exchange ends. */
MK_API struct mk_request *mk_filter_request(const struct mk_filter *filter);

/* The lines of a block, in their order, before that of Content-Length. */
enum mk_block_line {
    MK_BLOCK_LAST_MODIFIED,
    MK_BLOCK_ETAG,
    MK_BLOCK_CONTENT_TYPE,
    MK_BLOCK_CONTENT_ENCODING,
    MK_BLOCK_ACCEPT_RANGES,
    MK_BLOCK_LINES,
};

/*
 * Header lines that were formatted once, for many responses with the same representation: lines with their CRLF, and
 * Content-Length as the last one. Each name is followed by ": " (RFC 9112 section 5).
 */
struct mk_response_block {
    struct mk_str text;                /* all lines */
    uint64_t content_length;           /* the value of Content-Length */
    uint16_t length_at;                /* where its line begins */
    uint8_t value_len[MK_BLOCK_LINES]; /* of the other lines; 0: the block does not have the line */
};

/* Counts the references to an object that is shared by responses, of one thread or several. */
struct mk_owner {
    void (*get)(void *owned);
    void (*put)(void *owned);
};

/*
 * Returns a number for mk_file.version. The device and the inode tell files of equal size and time apart, as in two
 * releases that were unpacked with the times of their archive. The time of the last change of the inode tells versions
 * of one file apart, since that of the content can be set to any value. It has no fraction of a second on file systems
 * that do not record it, such as images that are only read: the number is 0 there, and the tag weak.
 */
static inline uint64_t mk_file_version(uint64_t device, uint64_t inode, int64_t ctime_seconds,
                                       uint32_t ctime_nanoseconds)
{
    uint64_t time = (uint64_t)ctime_seconds * 1000000000 + ctime_nanoseconds;
    uint64_t version = time * UINT64_C(0x9e3779b97f4a7c15) + device * UINT64_C(0xc2b2ae3d27d4eb4f) + inode;
    return ctime_nanoseconds ? version : 0;
}

/* An open regular file. */
struct mk_file {
    int fd;                /* mk_response_file() takes it over, unless there is an owner; not used with `content` */
    struct mk_str content; /* all bytes of the file, valid until the exchange ends; `.p` NULL: read them from `fd` */
    uint64_t bytes;
    int64_t mtime_seconds;
    uint32_t mtime_nanoseconds;
    uint64_t version;      /* of mk_file_version(), for the entity tag; 0: the tag is weak, and made of size and time */
    struct mk_str type;    /* Content-Type, unless there is a block; valid until the exchange ends */
    enum mk_coding coding; /* Content-Encoding; the entity tag ends with it, because the bytes are others */
    bool no_ranges;        /* Range is ignored */
    bool in_memory;        /* on a file system without a disk: reading never waits */
    /*
     * Last-Modified, ETag, Content-Type, Content-Encoding and Accept-Ranges, as mk_file_block() formats them; NULL:
     * they are formatted for this response. With an owner it is valid as long as that.
     */
    const struct mk_response_block *block;
    /*
     * What `fd`, `content` and `block` belong to, if they are shared: they are valid until another request is served,
     * and until put() if get() was called. The server calls both, if the exchange needs them for longer. NULL: no
     * owner.
     */
    const struct mk_owner *owner;
    void *owned;
};

enum { MK_FILE_BLOCK_BYTES = 512 };
/*
 * Formats the header lines of a file into `to`, for mk_file.block; `file->type` has 1 to 255 bytes. Not for a file
 * that was changed in the last two seconds or has a time stamp in the future, whose validators change with the clock:
 * see mk_file_is_settled(). Any thread.
 * Returns 0 or -EMSGSIZE (the type is empty or longer).
 */
MK_API int mk_file_block(const struct mk_file *file, char to[MK_FILE_BLOCK_BYTES], struct mk_response_block *ret_block);
/* Returns true if the file was last changed so long ago that its validators do not change any more without the file. */
MK_API bool mk_file_is_settled(const struct mk_file *file, int64_t wall_seconds);

/*
 * Responds to GET and HEAD with a file and ends the response. Sends validators, and evaluates preconditions (in the
 * order of RFC 9110 section 13.2.2) and ranges (section 14): the status is 200, 206, 304, 412 or 416, and 503 without
 * memory.
 */
MK_API void mk_response_file(struct mk_request *req, const struct mk_file *file);

/*
 * Reads bytes of a file that are in the page cache; on a file system without a disk, all are. Any thread.
 * Returns their number, fewer than `size` if the others are not there, 0 at the end of the file, -EAGAIN (none is in
 * the page cache) or another -errno.
 */
MK_API ssize_t mk_file_read_cached(int fd, char *to, size_t size, uint64_t at);
/*
 * Checks that the bytes from `from` up to `to` are in the page cache, so that sending them does not wait for a disk. It
 * looks at one byte of each 128 KB. Any thread.
 * Returns 0, -EAGAIN (some are not), -EIO (the file is shorter) or another -errno.
 */
MK_API int mk_file_check_cached(int fd, uint64_t from, uint64_t to);

/*
 * Returns the configured type of a file by the extension of its name, with a charset for text. Valid until the exchange
 * ends.
 */
MK_API struct mk_str mk_request_mime(const struct mk_request *req, struct mk_str path);
/*
 * Returns a number for the configured types: with the same number mk_request_mime() returns the same types, also in
 * another generation.
 */
MK_API uint64_t mk_request_mime_id(const struct mk_request *req);

MK_C_END

#endif
