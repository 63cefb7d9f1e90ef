// SPDX-License-Identifier: Apache-2.0
/*
 * The object `session`: what a request reads and changes (session.h).
 */
#include "session/session.h"

#include "common/api_error.h"
#include "common/current.h"
#include "common/heap.h"
#include "objects.h"
#include "request/request.h"

#include <monkey/base/random.h>

#include <errno.h>

struct session_state *session_find(struct duda_request *dr, const char *call)
{
    struct session_state *s = dr->session;
    if (s && s->phase == SESSION_OPEN)
        return s;
    api_error_log(dr->worker, call,
                  s && s->phase == SESSION_SAVING ? "session->save() has not called its function yet"
                                                  : "session->open() has not called its function yet");
    return NULL;
}

bool session_exists(const struct session_state *s)
{
    return s->begins || (s->found && !s->destroys);
}

/* ── reading ── */

bool session_get(const struct session_state *s, struct mk_str key, struct mk_str *ret)
{
    const struct session_change *change = session_values_find_change(s->changes, key);
    if (!change)
        change = session_values_find_change(s->saved, key);
    if (!change)
        return !s->hides && session_values_find(s->values, key, ret);
    *ret = change->value;
    return !change->removes;
}

/* ── changing ── */

static int begin_session(struct session_state *s)
{
    int err = session_exists(s) ? 0 : session_id_make(&s->new_id);
    if (err < 0 || session_exists(s))
        return err;
    session_id_digest(&s->new_id, s->store, &s->new_key);
    s->begins = true;
    return 0;
}

static struct session_change *add_change(struct duda_request *dr, struct session_state *s, struct mk_str key)
{
    struct mk_arena *arena = mk_request_arena(dr->req);
    struct session_change *c = mk_arena_zalloc(arena, sizeof(*c));
    if (!c || !(c->key = mk_arena_dup(arena, key)).p)
        return NULL;
    c->next = s->changes;
    s->changes = c;
    s->n_changes++;
    return c;
}

/* Finds the change of a key, or adds one. Returns 0, -EINVAL (the key), -EMSGSIZE (too many) or -ENOMEM. */
static int get_change(struct duda_request *dr, struct session_state *s, struct mk_str key, struct session_change **ret)
{
    assert(s->n_changes <= DUDA_SESSION_KEYS_MAX);
    if (!key.len || key.len > DUDA_SESSION_KEY_BYTES)
        return -EINVAL;
    *ret = (struct session_change *)(uintptr_t)session_values_find_change(s->changes, key);
    if (*ret)
        return 0;
    if (s->n_changes == DUDA_SESSION_KEYS_MAX)
        return -EMSGSIZE;
    *ret = add_change(dr, s, key);
    return *ret ? 0 : -ENOMEM;
}

/* Copies a value to where it stays until the request ends: values that were read before stay valid. */
static struct mk_str copy_value(struct duda_request *dr, struct mk_str value)
{
    char *copy = heap_alloc_until(mk_request_arena(dr->req), value.len + 1);
    if (!copy)
        return MK_STR_NONE;
    if (value.len)
        memcpy(copy, value.p, value.len);
    copy[value.len] = '\0';
    return mk_str(copy, value.len);
}

int session_set(struct duda_request *dr, struct session_state *s, struct mk_str key, struct mk_str value)
{
    struct session_change *change;
    if (value.len > sessions_of(dr->worker->service)->limits.session_bytes)
        return -EMSGSIZE;
    struct mk_str copy = copy_value(dr, value);
    if (!copy.p)
        return -ENOMEM;
    int err = begin_session(s);
    if (err == 0)
        err = get_change(dr, s, key, &change);
    if (err < 0)
        return err;
    change->value = copy;
    change->removes = false;
    return 0;
}

static int remove_key(struct duda_request *dr, struct session_state *s, struct mk_str key)
{
    struct session_change *change;
    int err = get_change(dr, s, key, &change);
    if (err == 0)
        change->removes = true;
    return err;
}

int session_renew(struct session_state *s)
{
    if (!s->found || s->destroys || s->renews || s->is_own_id)
        return 0;
    int err = session_id_make(&s->new_id);
    if (err < 0)
        return err;
    session_id_digest(&s->new_id, s->store, &s->new_key);
    s->renews = true;
    return 0;
}

void session_destroy(struct session_state *s)
{
    s->destroys = true;
    s->begins = s->renews = false;
    s->changes = s->saved = NULL;
    s->n_changes = 0;
    s->hides = true;
}

/* ── the object ── */

static int init_sessions(const struct duda_session_conf *conf)
{
    if (!phase_check(PHASE_MAIN, "session->init()"))
        return -EINVAL;
    return session_conf_set(current.service, conf, false);
}

static const char no_function[] = "sessions that are not in memory need a function";

static int open_session(duda_request_t *dr, duda_session_fn fn, void *data)
{
    static const char call[] = "session->open()";
    int err = request_check(dr, call);
    if (err < 0)
        return err;
    const struct service_sessions *conf = sessions_of(dr->worker->service);
    if (!conf->store || (!fn && session_is_slow(conf)))
        return request_refuse(dr, call, -EINVAL,
                              conf->store ? no_function : "duda_main() has not called session->init()");
    if (dr->session)
        return request_refuse(dr, call, -EALREADY, "the request has called it before");
    return session_open(dr, fn, data);
}

/* Checks that a request has an open session. Returns 0, -EINVAL or as request_check(); an error is logged. */
static int check_call(duda_request_t *dr, const char *call)
{
    int err = request_check(dr, call);
    return err == 0 && !session_find(dr, call) ? -EINVAL : err;
}

REQUEST_CALL(bool has_session(duda_request_t *dr), check_call, "session->exists()", false, session_exists(dr->session))

static const char *get_value(duda_request_t *dr, const char *key, size_t *ret_len)
{
    struct mk_str value = MK_STR_NONE;
    bool found = check_call(dr, "session->get()") == 0 && session_get(dr->session, mk_str_c(key), &value);
    if (ret_len)
        *ret_len = found ? value.len : 0;
    return found ? value.p : NULL;
}

static int set_value(duda_request_t *dr, const char *key, const void *value, ssize_t len)
{
    if (check_call(dr, "session->set()") < 0 || len < -1 || (!value && len != 0))
        return -EINVAL;
    struct mk_str text = len < 0 ? mk_str_c(value) : mk_str(value, (size_t)len);
    return session_set(dr, dr->session, mk_str_c(key), text);
}

REQUEST_CALL(int remove_value(duda_request_t *dr, const char *key), check_call, "session->remove()", -EINVAL,
             remove_key(dr, dr->session, mk_str_c(key)))

REQUEST_CALL(int renew_session(duda_request_t *dr), check_call, "session->renew()", -EINVAL, session_renew(dr->session))

REQUEST_CALL(int destroy_session(duda_request_t *dr), check_call, "session->destroy()", -EINVAL,
             (session_destroy(dr->session), 0))

REQUEST_CALL(const char *get_csrf_token(duda_request_t *dr), check_call, "session->csrf_token()", NULL,
             session_csrf_token(dr, dr->session))

REQUEST_CALL(int check_csrf(duda_request_t *dr), check_call, "session->csrf_check()", -EINVAL,
             session_csrf_check(dr, dr->session))

static int make_token(char *text, size_t size)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    if (!text || size < 2)
        return api_error_report(current.worker, "session->random_token()", -EINVAL);
    int err = mk_random(text, size - 1);
    for (size_t i = 0; i < size - 1; i++)
        text[i] = digits[text[i] & 63];
    text[err < 0 ? 0 : size - 1] = '\0';
    return err < 0 ? -EIO : 0;
}

static int save_session(duda_request_t *dr, duda_session_fn fn, void *data)
{
    static const char call[] = "session->save()";
    int err = check_call(dr, call);
    if (err < 0)
        return err;
    if (!fn && session_is_slow(sessions_of(dr->worker->service)))
        return request_refuse(dr, call, -EINVAL, no_function);
    return session_save(dr, dr->session, fn, data);
}

const struct duda_api_session object_session = {
    .init = init_sessions,
    .open = open_session,
    .exists = has_session,
    .get = get_value,
    .set = set_value,
    .remove = remove_value,
    .renew = renew_session,
    .destroy = destroy_session,
    .save = save_session,
    .csrf_token = get_csrf_token,
    .csrf_check = check_csrf,
    .random_token = make_token,
};
