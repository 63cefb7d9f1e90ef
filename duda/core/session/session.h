// SPDX-License-Identifier: Apache-2.0
/*
 * Sessions of services and their requests, for the object `session` and the one of the original API.
 *
 *     session.c          what requests read and change
 *     session_save.c     reads and writes stores, on disk threads if they are files
 *     session_conf.c     session->init(), and the names of cookies
 *     session_id.c       ids, their digests, cookies, and the tokens that are bound to ids
 *     session_store.c, session_folder.c, session_file.c    the stores; session_values.c    what is in them
 */
#ifndef DUDA_CORE_SESSION_SESSION_H
#define DUDA_CORE_SESSION_SESSION_H

#include "session/session_store.h"
#include "service/service.h"

#include <duda/session.h>
#include <monkey/base/buf.h>

struct duda_request;
struct service;
struct session_job;

enum { SESSION_ID_BYTES = 16, SESSION_COOKIE_NAME_BYTES = 64 };

struct session_id {
    unsigned char bytes[SESSION_ID_BYTES];
};

/* What a service has said in session->init(); in struct service. */
struct service_sessions {
    struct session_store *store;                /* NULL: nothing */
    struct session_limits limits;               /* of the store, once the service has served */
    unsigned version;                           /* of the service, for the store */
    const struct duda_session_backend *backend; /* it has the sessions, and `store` only their limits; or NULL */
    const char *cookie;                         /* in the arena of the service; over TLS "__Host-" comes before it */
    int64_t absolute_s;
    bool persistent;
    bool is_old; /* of the original API: the cookie has its name over TLS too */
};

FEATURE_SLOT(sessions_of, struct service_sessions, service, FEATURE_SESSION)

enum session_phase { SESSION_OPENING, SESSION_OPEN, SESSION_SAVING };

/* The session of a request; in its arena. */
struct session_state {
    enum session_phase phase;
    bool has_cookie;       /* the client has sent one */
    bool found;            /* the store has it, by `key` */
    bool begins;           /* save() makes one, with the key `new_key` */
    bool renews, destroys; /* at save() */
    bool is_own_id;        /* `key` is of an id that was made for this request */
    bool hides;            /* `values` are of a session that was destroyed */
    struct session_key key, new_key;
    struct session_id new_id;
    const struct session_store *store;
    int64_t life_s;                         /* of a new id; 0: as the service has said */
    int64_t cookie_expires;                 /* since 1970; 0: see `persistent` */
    struct mk_str values;                   /* as they were read; on the heap */
    struct session_change *changes, *saved; /* in the arena; the second ones are in the store */
    unsigned n_changes;
    bool was_saved;          /* save() was called */
    struct session_job *job; /* on a disk thread, or NULL */
    duda_session_fn fn;
    void *data;
};

/* ── session_id.c ── */

/* Returns 0 or -EIO. */
int session_id_make(struct session_id *ret);
/* Sets the key of the session in the store: ids of other hosts and services have other keys. */
void session_id_digest(const struct session_id *id, const struct session_store *store, struct session_key *ret);
/* Appends the id in hexadecimal digits; `is_old`: with "-" in the middle. */
void session_id_print(const struct session_id *id, bool is_old, struct mk_buf *out);
/* Reads what session_id_print() writes, and nothing else. */
bool session_id_parse(struct mk_str text, bool is_old, struct session_id *ret);

/* Finds the session's cookie of a request. Returns whether there is one; *ret_valid: whether it has an id. */
bool session_cookie_find(struct duda_request *dr, struct session_key *ret, bool *ret_valid);
/* Sets the cookie to `id`, or removes it if that is NULL. Returns 0, -EALREADY or -ENOMEM. */
int session_cookie_set(struct duda_request *dr, const struct session_id *id, int64_t expires);

/* Returns the token of the session, in the arena of the request; NULL without a session or memory. */
const char *session_csrf_token(struct duda_request *dr, const struct session_state *s);
/* Returns whether the request has the token of the session with which it came: 0 or -EACCES. */
int session_csrf_check(struct duda_request *dr, const struct session_state *s);

/* Returns whether reading and writing sessions takes time: the functions of the service are called later. */
static inline bool session_is_slow(const struct service_sessions *s)
{
    return s->backend || s->store->folder;
}

/* ── session_conf.c ── */

int session_conf_set(struct service *s, const struct duda_session_conf *conf, bool is_old);
void session_conf_release(struct service *s);

/* ── session.c; `call` is for the log ── */

/* Returns the session of a request that is open, and is not being saved; NULL: a mistake, which was logged. */
struct session_state *session_find(struct duda_request *dr, const char *call);
int session_set(struct duda_request *dr, struct session_state *s, struct mk_str key, struct mk_str value);
bool session_get(const struct session_state *s, struct mk_str key, struct mk_str *ret);
bool session_exists(const struct session_state *s);
int session_renew(struct session_state *s);
void session_destroy(struct session_state *s);

/* ── session_save.c ── */

int session_open(struct duda_request *dr, duda_session_fn fn, void *data);
int session_save(struct duda_request *dr, struct session_state *s, duda_session_fn fn, void *data);
/* The request ends. */
void session_release(struct duda_request *dr);

#endif
