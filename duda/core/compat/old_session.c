// SPDX-License-Identifier: Apache-2.0
/*
 * The original API: the object "session.1" (<duda/compat/session.h>), on stores in memory.
 */
#include "common/api_error.h"
#include "common/current.h"
#include "common/mem.h"
#include "compat/old.h"
#include "request/request.h"
#include "session/session.h"

#include <time.h>

enum { DAY_S = 86400, YEAR_S = 365 * DAY_S };

static int init_sessions(void)
{
    static const struct duda_session_conf conf = {.idle_s = DAY_S, .absolute_s = YEAR_S};
    return phase_check(PHASE_MAIN, "session->init()") && session_conf_set(current.service, &conf, true) == 0 ? 0 : -1;
}

/* Returns the session of a request, which is opened by the first call. NULL: a mistake, which was logged. */
static struct session_state *open_session(duda_request_t *dr, const char *call)
{
    if (request_check(dr, call) < 0)
        return NULL;
    if (!sessions_of(dr->worker->service)->store) {
        api_error_log(dr->worker, call, "duda_main() has not called session->init()");
        return NULL;
    }
    if (!dr->session && session_open(dr, NULL, NULL) < 0)
        return NULL;
    return session_find(dr, call);
}

static void set_end(struct session_state *s, int expires)
{
    int64_t life = expires > 0 ? expires - (int64_t)time(NULL) : 0;
    s->cookie_expires = expires > 0 ? expires : 0;
    s->life_s = life > YEAR_S ? YEAR_S : life;
    if (expires > 0 && life == 0)
        s->life_s = -1; /* 0 would be the default */
}

static int create_session(duda_request_t *dr, const char *name, const char *value, int expires)
{
    struct session_state *s = open_session(dr, "session->create()");
    if (!s || !value)
        return -1;
    set_end(s, expires);
    if (session_renew(s) < 0 || session_set(dr, s, mk_str_c(name), mk_str_c(value)) < 0)
        return -1;
    return session_save(dr, s, NULL, NULL) == 0 ? 0 : -1;
}

static int destroy_session(duda_request_t *dr, const char *name)
{
    struct session_state *s = open_session(dr, "session->destroy()");
    (void)name;
    if (!s || !session_exists(s))
        return -1;
    session_destroy(s);
    return session_save(dr, s, NULL, NULL) == 0 ? 0 : -1;
}

static bool find_value(duda_request_t *dr, const char *name, const char *call, struct mk_str *ret)
{
    const struct session_state *s = open_session(dr, call);
    return s && session_get(s, mk_str_c(name), ret);
}

static void *get_value(duda_request_t *dr, const char *name)
{
    struct mk_str value;
    return find_value(dr, name, "session->get()", &value) ? mem_dup(value) : NULL;
}

static int is_set(duda_request_t *dr, const char *name)
{
    struct mk_str value;
    return find_value(dr, name, "session->isset()", &value) ? 0 : -1;
}

const struct duda_old_session old_session = {
    .init = init_sessions,
    .create = create_session,
    .destroy = destroy_session,
    .get = get_value,
    .isset = is_set,
};
