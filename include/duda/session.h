// SPDX-License-Identifier: Apache-2.0
/*
 * The object `session`: keys and values that the server keeps for a client. The client has a cookie with a random id of
 * 128 bits (getrandom()); nothing else leaves the server.
 *
 *     session->open() ─► get(), set(), remove(), renew(), destroy() ─► session->save() ─► response->end()
 *
 * What a request changes is its own until save(): then its keys are written, in one step, into the session as other
 * requests have left it meanwhile. So of two requests that set one key the last save() decides, and keys that only one
 * of them has set are not lost. A session that was destroyed or renewed meanwhile is not written: -ESTALE.
 *
 * The id is made by the first set() of a request without a session, and by renew(). A login calls renew(): an id that
 * an attacker has planted in a browser before (session fixation) then means nothing. The id of a client is never
 * taken for a new session. A request that came with the old id, and saves after renew(), gets -ESTALE.
 *
 * The cookie is HttpOnly and SameSite=Lax. Over TLS it is also Secure, and its name begins with "__Host-", so that no
 * other host can set it; only that cookie is read over TLS.
 */
#ifndef DUDA_SESSION_H
#define DUDA_SESSION_H

#include "types.h"

enum {
    DUDA_SESSION_KEY_BYTES = 64,    /* of a key at most, without the NUL */
    DUDA_SESSION_KEYS_MAX = 256,    /* of a session, and of those that a request changes before save() */
    DUDA_SESSION_BYTES_MAX = 65535, /* of a value, and of all keys and values of a session, with 5 bytes each */
};

struct duda_session_backend;

/* Fields that are 0 have the value in brackets. */
struct duda_session_conf {
    /*
     * NULL: the sessions are in memory, shared by all workers. They stay over a reload and over a new version of the
     * service, and end with the server. Otherwise a folder, which is made with the mode 0700; a relative path is one in
     * DataDir. It must belong to the user of the server and be closed to others. Each session is a file of the mode
     * 0600, whose name is a digest of the id.
     */
    const char *folder;
    const char *cookie;     /* the name, a token of at most 64 bytes [the service's name and "-session"] */
    uint32_t idle_s;        /* the session ends this many seconds after its last use [1800] */
    uint32_t absolute_s;    /* and this many seconds after it was made or renewed [43200] */
    uint32_t sessions_max;  /* of the store [10000]; at most 1,000,000 in memory, 100,000 in files */
    uint64_t bytes_max;     /* of all keys and values in memory [64 MB]; not for files */
    uint32_t session_bytes; /* of one session [16384] */
    bool persistent;        /* the browser keeps the cookie after its end, for `absolute_s` */
    /*
     * What keeps the sessions elsewhere, so that several servers share them, such as redis->sessions(db); `folder` is
     * NULL then, and `bytes_max` is not for it. NULL: nothing else.
     */
    const struct duda_session_backend *backend;
};

/*
 * Called once, in the worker of the request, unless the request has ended before. `result`: see open() and save(). The
 * calls that led here may be on the stack.
 */
typedef void (*duda_session_fn)(duda_request_t *dr, int result, void *data);

struct duda_api_session {
    /*
     * Makes the store of the service; one call in duda_main(), which copies `conf`. NULL: all defaults.
     *
     * If a store is full, sessions are ended: those that have expired, then those whose last use is the longest ago.
     * So that clients without a login cannot displace others by their number, call set() first at the login.
     * Returns 0, -EINVAL (a field is not as above), -EALREADY (a second call) or -ENOMEM.
     */
    int (*init)(const struct duda_session_conf *conf);

    /*
     * Finds the session of the request's cookie, and counts it as used. `fn` gets 0, also if there is no valid session,
     * -EIO (the file, the folder or the backend cannot be read; the log says why) or -ENOMEM. It is called before
     * open() returns if the sessions are in memory or the request has no cookie, otherwise later, after a disk thread
     * has read the file or the backend has replied. `fn` may be NULL for sessions in memory: then open() returns the
     * result. Returns 0; or -EINVAL (no init(), or no `fn` for sessions that are not in memory), -EPERM, -ESTALE,
     * -EALREADY (the request has called it before), -EIO (the backend; logged) or -ENOMEM, after which `fn` is not
     * called.
     */
    int (*open)(duda_request_t *dr, duda_session_fn fn, void *data);

    /* ── between open() and save(); these see the session as it was read, with the request's own changes ── */

    /* Returns whether there is a session: one was found or set() has begun one, and destroy() was not called. */
    bool (*exists)(duda_request_t *dr);
    /*
     * Returns a value, which ends with a NUL that does not count; NULL if there is none. `ret_len` may be NULL. Valid
     * until the request ends.
     */
    const char *(*get)(duda_request_t *dr, const char *key, size_t *ret_len);
    /*
     * Sets a value; begins a session if there is none. A `len` of -1 is that of a string.
     * Returns 0, -EINVAL (the key is NULL, empty or too long; the session is not open), -EMSGSIZE (the value alone is
     * longer than `session_bytes`, or the request changes too many keys), -ENOMEM or -EIO (no random bytes).
     */
    int (*set)(duda_request_t *dr, const char *key, const void *value, ssize_t len);
    /* Removes a key. Returns 0, -EINVAL or -EMSGSIZE (as set()), or -ENOMEM. */
    int (*remove)(duda_request_t *dr, const char *key);
    /*
     * Gives the session a new id with save(), and a new `absolute_s`. Its keys stay. Does nothing without a session, or
     * with a new one. Returns 0, -EINVAL (not open) or -EIO.
     */
    int (*renew)(duda_request_t *dr);
    /* Ends the session and removes the cookie, with save(). Returns 0 or -EINVAL (not open). */
    int (*destroy)(duda_request_t *dr);

    /*
     * Writes the changes and sets the cookie if the id is new, which must be before the response's head is sent. It may
     * be called again after further changes. `fn` may be NULL for sessions in memory. It gets
     *
     *     0           done
     *     -ESTALE     the session was destroyed or renewed, or has expired, since open(): nothing was written
     *     -ENOSPC     it would have more than `session_bytes`, or too many keys: nothing was written
     *     -EIO        it could not be written; the log says why
     *     -EALREADY   it was written, but the response was begun meanwhile, so that the cookie could not be set
     *     -ENOMEM
     *
     * Returns 0; or -EINVAL (not open, or another save() is under way), -EPERM, -ESTALE (the request has ended),
     * -EALREADY (the head was sent), -EIO (the backend; logged) or -ENOMEM, after which `fn` is not called. If `fn` is
     * NULL it returns the result.
     */
    int (*save)(duda_request_t *dr, duda_session_fn fn, void *data);

    /* ── tokens against requests that other sites make a browser send (CSRF); between open() and save() ── */

    /*
     * Returns the token of the session for the forms of a page: 40 hexadecimal digits. It belongs to the id: a session
     * that has begun or was renewed in this request has that of its new id, and pages from before a renew() have one
     * that is not valid any more. Valid until the request ends. NULL: there is no session (call set() first), open()
     * has not called its function, or no memory.
     */
    const char *(*csrf_token)(duda_request_t *dr);
    /*
     * Compares the header X-CSRF-Token, or without it the field csrf_token of the form (object `form`), with the token
     * of the session with which the request has come. How long that takes does not depend on what was sent.
     * Callbacks of before() run before a form is read, so that only the header counts there.
     * Returns 0; -EACCES (there is no session, no token, or another one: respond with 403); or -EINVAL (not open).
     */
    int (*csrf_check)(duda_request_t *dr);

    /* ── tokens for other purposes; without init() and open() ── */

    /*
     * Fills `text` with random characters and a NUL after them: `size` - 1 of A-Z, a-z, 0-9, "-" and "_", each of 6
     * random bits of the kernel. So 22 characters (132 bits) cannot be guessed: for links that confirm an address, keys
     * of an API ... Returns 0; or -EINVAL (`text` is NULL, `size` is less than 2; logged) or -EIO, with "". Any thread.
     */
    int (*random_token)(char *text, size_t size);
};

DUDA_OBJECT(struct duda_api_session, session)

/* ── backends: for packages that keep sessions. Their functions are called in workers, in callbacks of the service ──
 */

enum { DUDA_SESSION_DIGEST_BYTES = 20 }; /* by which a backend knows a session: it never sees ids */

/* A key with its value, or what a request does to one. */
struct duda_session_pair {
    const char *key, *value;
    size_t key_len, value_len;
    bool removes;
};

/* The sessions of a service: those of other services, also of the same backend, are none of it. */
struct duda_session_scope {
    const char *host, *service;                   /* `host`: "NAME@FILE" */
    uint32_t idle_s, sessions_max, session_bytes; /* see struct duda_session_conf */
};

/*
 * What a request does to a session. `from`: the one that it has found; `to`: the one that there is afterwards; digests,
 * or NULL.
 *
 *     create   to             update   from, to are the same      destroy   from, drops
 *     renew    from, to       destroy and create anew   from, to, drops
 */
struct duda_session_commit {
    const unsigned char *from, *to;
    bool drops; /* the values of `from`, which may be gone */
    const struct duda_session_pair *changes;
    unsigned n;
    uint32_t life_s; /* from now to the end of a session with a new digest */
};

/*
 * Called once, in the worker, not from within load() or commit(). `pairs`: of load(), valid until it returns. `result`:
 * 0; -ENOENT (load: there is no such session), -ESTALE (commit: `from` is gone, and `drops` is false), -ENOSPC (commit:
 * more than `session_bytes`, with 5 bytes for each pair, or DUDA_SESSION_KEYS_MAX), -EIO, which the backend has logged,
 * or -ENOMEM.
 */
typedef void (*duda_session_backend_fn)(void *ctx, int result, const struct duda_session_pair *pairs, unsigned n);

/*
 * All of a call is read before it returns. Each of them is one step for all workers and servers. It enforces the ends
 * of sessions, and when there are more than `sessions_max` it ends those whose last use is the longest ago.
 */
struct duda_session_backend {
    void *data; /* the first argument of the functions */
    /* Reads a session, and counts it as used. Returns 0, or -EIO (logged) or -ENOMEM, after which `fn` is not called.
     */
    int (*load)(void *data, const struct duda_session_scope *scope, const unsigned char *digest,
                duda_session_backend_fn fn, void *ctx);
    /* Writes a session. Returns as load(). */
    int (*commit)(void *data, const struct duda_session_scope *scope, const struct duda_session_commit *commit,
                  duda_session_backend_fn fn, void *ctx);
};

#endif
