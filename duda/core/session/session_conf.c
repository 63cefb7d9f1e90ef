// SPDX-License-Identifier: Apache-2.0
/*
 * The sessions of a service (session.h).
 */
#include "log/message.h"
#include "service/service.h"
#include "session/session.h"

#include <monkey/kit/cookie.h>

#include <errno.h>
#include <stdio.h>

enum {
    IDLE_S = 1800,
    ABSOLUTE_S = 43200,
    LIFE_S_MAX = 31622400, /* a year */
    SESSIONS = 10000,
    SESSIONS_MAX = 1000000,
    FILES_MAX = 100000,
    SESSION_BYTES = 16384,
    MEMORY_BYTES = 64 << 20,
    FOLDER_BYTES_MAX = 1024,
};

/* ── defaults and checks ── */

static struct duda_session_conf add_defaults(const struct duda_session_conf *conf)
{
    struct duda_session_conf c = conf ? *conf : (struct duda_session_conf){0};
    c.idle_s = c.idle_s ? c.idle_s : IDLE_S;
    c.absolute_s = c.absolute_s ? c.absolute_s : c.idle_s > ABSOLUTE_S ? c.idle_s : ABSOLUTE_S;
    c.sessions_max = c.sessions_max ? c.sessions_max : SESSIONS;
    c.bytes_max = c.bytes_max ? c.bytes_max : MEMORY_BYTES;
    c.session_bytes = c.session_bytes ? c.session_bytes : SESSION_BYTES;
    return c;
}

/* Checks the name as the cookie's own checks do. */
static bool is_name(const char *name)
{
    MK_BUF_ON_STACK(out, MK_COOKIE_BYTES_MAX);
    return strlen(name) <= SESSION_COOKIE_NAME_BYTES &&
           mk_cookie_write(&out, &(struct mk_cookie){.name = mk_str_c(name)}) == 0;
}

static const char *find_fault(const struct service *s, const struct duda_session_conf *c)
{
    if (c->cookie && !is_name(c->cookie))
        return "`cookie` must be a token of at most 64 bytes without the prefixes \"__Host-\" and \"__Secure-\"";
    if (c->idle_s > LIFE_S_MAX || c->absolute_s > LIFE_S_MAX)
        return "`idle_s` and `absolute_s` must be at most 31622400, a year";
    if (c->sessions_max > (c->folder ? FILES_MAX : SESSIONS_MAX))
        return "`sessions_max` must be at most 1000000 in memory, and 100000 in files";
    if (c->folder && c->backend)
        return "`folder` and `backend` cannot both be set";
    if (c->backend && (!c->backend->load || !c->backend->commit))
        return "`backend` has no functions";
    if (c->session_bytes > DUDA_SESSION_BYTES_MAX || (!c->folder && !c->backend && c->session_bytes > c->bytes_max))
        return "`session_bytes` must be at most 65535, and at most `bytes_max`";
    if (c->folder && (!*c->folder || strlen(c->folder) > FOLDER_BYTES_MAX))
        return "`folder` must have 1 to 1024 bytes";
    if (c->folder && *c->folder != '/' && !s->self.datadir.len)
        return "`folder` is relative, but the section [WEB_SERVICE] does not set DataDir (dudac sets it if the folder "
               "`data` exists)";
    return NULL;
}

/* ── the service ── */

static char *join_texts(struct mk_arena *arena, const char *first, const char *second)
{
    size_t size = strlen(first) + strlen(second) + 1;
    char *text = mk_arena_alloc(arena, size);
    if (text)
        snprintf(text, size, "%s%s", first, second);
    return text;
}

static const char *make_cookie_name(struct service *s, const char *wanted, bool is_old)
{
    if (is_old)
        return "DUDA_SESSION";
    if (wanted)
        return join_texts(&s->arena, wanted, "");
    char *name = join_texts(&s->arena, s->self.name.data, "-session");
    return name && strlen(name) > SESSION_COOKIE_NAME_BYTES ? "duda-session" : name;
}

/* Takes a store with these settings, which were checked. */
static int take_store(struct service *s, const struct duda_session_conf *c)
{
    const char *base = c->folder && *c->folder != '/' ? s->self.datadir.data : "";
    char *folder = c->folder ? join_texts(&s->arena, base, c->folder) : NULL;
    sessions_of(s)->limits = (struct session_limits){
        .idle_s = c->idle_s,
        .bytes_max = c->bytes_max,
        .sessions_max = c->sessions_max,
        .session_bytes = c->session_bytes,
    };
    if (c->folder && !folder)
        return -ENOMEM;
    sessions_of(s)->store =
        session_store_get(&s->set->session_stores, s->site.p, s->self.name.data, folder, &sessions_of(s)->version);
    return sessions_of(s)->store ? 0 : -ENOMEM;
}

int session_conf_set(struct service *s, const struct duda_session_conf *conf, bool is_old)
{
    struct duda_session_conf c = add_defaults(conf);
    const char *fault = sessions_of(s)->store ? "it was called before" : find_fault(s, &c);
    if (fault) {
        message_log(MK_LOG_ERROR, "session->init(): %s", fault);
        return sessions_of(s)->store ? -EALREADY : -EINVAL;
    }
    *sessions_of(s) = (struct service_sessions){
        .backend = c.backend,
        .cookie = make_cookie_name(s, c.cookie, is_old),
        .absolute_s = c.absolute_s,
        .persistent = c.persistent,
        .is_old = is_old,
    };
    return sessions_of(s)->cookie ? take_store(s, &c) : -ENOMEM;
}

void session_conf_release(struct service *s)
{
    if (sessions_of(s)->store)
        session_store_drop(sessions_of(s)->store);
    sessions_of(s)->store = NULL;
}
