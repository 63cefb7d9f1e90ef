// SPDX-License-Identifier: Apache-2.0
/*
 * Opening, keeping and closing the sockets of server/sockets.h. Who watches them is decided by the workers.
 */
#include "server/sockets.h"

#include "base/file.h"

#include <monkey/arena.h>
#include <monkey/log.h>

#include <errno.h>
#include <stdatomic.h>
#include <unistd.h>

void mk__sockets_init(struct mk__sockets *s)
{
    mk_list_init(&s->open);
    mk_list_init(&s->gone);
#ifndef MK_LEAN
    mk_list_init(&s->inherited);
#endif
}

struct mk__listen_options mk__sockets_options(const struct mk__settings *settings)
{
    return (struct mk__listen_options){
        .backlog = (int)settings->backlog,
        .defer_seconds = (int)((settings->defer_accept_ms + 999) / 1000),
        .fast_open_queue = (int)settings->fast_open,
        .send_buffer = (int)settings->send_buffer_bytes,
        .not_sent_lowat = (int)settings->not_sent_bytes,
        .shared_port = true,
    };
}

/* Small builds open their sockets once. */
#ifdef MK_LEAN
enum { RELOADS = false };
#else
enum { RELOADS = true };
#endif

/* ── one address ── */

static struct mk__listening *new_listening(const struct mk__listener *directive)
{
    struct mk__listening *one = mk_account_alloc(NULL, sizeof(*one) + directive->text.len + 1);
    if (!one)
        return NULL;
    *one = (struct mk__listening){.wanted = directive->addr,
                                  .addr = directive->addr,
                                  .shared = directive->addr.sa.sa_family == AF_UNIX,
                                  .fresh = true};
    char *text = (char *)(one + 1);
    memcpy(text, directive->text.p, directive->text.len);
    text[directive->text.len] = '\0';
    one->text = mk_str(text, directive->text.len);
    return one;
}

static size_t fds_bytes(unsigned n)
{
    return n * sizeof(int);
}

static void close_from(struct mk__listening *one, unsigned first)
{
    for (unsigned i = first; i < one->n; i++)
        close(one->fds[i]);
    one->n = first;
}

static bool is_lent(const struct mk__listening *one)
{
#ifdef MK_LEAN
    (void)one;
    return false;
#else
    return one->lent;
#endif
}

/* The path of a Unix socket is ours to remove only if we have bound it. */
static void close_listening(struct mk__listening *one)
{
    if (one->n && one->addr.sa.sa_family == AF_UNIX && !is_lent(one))
        mk__file_unlink_socket(one->addr.un.sun_path);
    close_from(one, 0);
    mk_account_free(NULL, one->fds, 0);
    one->fds = NULL;
}

static void free_all(struct mk_list *list)
{
    while (!mk_list_empty(list)) {
        struct mk__listening *one = MK_LIST_FIRST(list, struct mk__listening, node);
        mk_list_del(&one->node);
        if (one->fds)
            close_listening(one);
        mk_account_free(NULL, one, 0);
    }
}

/* One of ours that is about to go is in the way: `Listen 80` becomes `Listen 127.0.0.1:80`. */
static bool is_clashing(const struct mk__sockets *s, const struct mk__listening *one)
{
    struct mk_list *n, *save;
    MK_LIST_EACH(&s->open, n, save) {
        const struct mk__listening *other = MK_OWNER(n, struct mk__listening, node);
        if (other != one && mk__addr_clash(&other->addr, &one->addr))
            return true;
    }
#ifndef MK_LEAN
    return mk__inherit_clashes(s, &one->addr);
#else
    return false;
#endif
}

/*
 * The first socket is bound alone: a second server would otherwise take half of our connections. One that joins others
 * gets its share of what comes as soon as it listens, and so does not before somebody is sure to look at it.
 */
static int add_socket(const struct mk__sockets *s, struct mk__listening *one, struct mk__listen_options options)
{
    options.shared_port = one->n > 0 || (RELOADS && is_clashing(s, one));
    int fd = mk__listen_bind(&one->addr, &options);
    if (fd < 0)
        return fd;
    int err = RELOADS && options.shared_port ? 0 : mk__listen_start(fd, &one->addr, &options);
    if (err < 0) {
        close(fd);
        return err;
    }
    one->fds[one->n++] = fd;
    return 0;
}

static int open_sockets(const struct mk__sockets *s, struct mk__listening *one, const struct mk__settings *settings,
                        unsigned workers)
{
    struct mk__listen_options options = mk__sockets_options(settings);
    unsigned n = one->shared ? 1 : workers;
    int err = 0;
    if (one->n >= n)
        return 0;
    int *fds = mk_account_alloc(NULL, fds_bytes(n));
    if (!fds)
        return -ENOMEM;
    if (one->n)
        memcpy(fds, one->fds, fds_bytes(one->n));
    mk_account_free(NULL, one->fds, 0);
    one->fds = fds;
    while (one->n < n && err == 0)
        err = add_socket(s, one, options);
#ifndef MK_LEAN
    if (one->n && (err == -EACCES || err == -EPERM || err == -EADDRINUSE)) {
        one->shared = true; /* others opened what we have, or we did as root: the workers share that */
        return 0;
    }
#endif
    return err;
}

#ifndef MK_LEAN
static void set_way(struct mk__listening *one)
{
    atomic_store_explicit(&one->transport, one->line->way.transport, memory_order_relaxed);
    atomic_store_explicit(&one->proxy, one->line->way.proxy, memory_order_relaxed);
}

struct mk__way mk__sockets_way(const struct mk__listening *one)
{
    return (struct mk__way){.transport = atomic_load_explicit(&one->transport, memory_order_relaxed),
                            .proxy = atomic_load_explicit(&one->proxy, memory_order_relaxed)};
}
#endif

/* ── all of them ── */

static struct mk__listening *find(struct mk__sockets *s, const struct mk__listener *directive)
{
    struct mk_list *n, *save;
    MK_LIST_EACH(&s->open, n, save) {
        struct mk__listening *one = MK_OWNER(n, struct mk__listening, node);
        if (!one->kept && mk__addr_same(&one->wanted, &directive->addr))
            return one;
    }
    return NULL;
}

int mk__sockets_prepare(struct mk__sockets *s, const struct mk__settings *settings, unsigned workers, unsigned *ret_nth)
{
    struct mk_list *n, *save;
    int err = 0;
    MK_LIST_EACH(&s->open, n, save) {
        struct mk__listening *one = MK_OWNER(n, struct mk__listening, node);
        one->kept = one->fresh = false;
        one->n_before = one->n;
    }
    for (*ret_nth = 0; *ret_nth < settings->listen.n; ++*ret_nth) {
        const struct mk__listener *directive = &settings->listen.items[*ret_nth];
        struct mk__listening *one = RELOADS ? find(s, directive) : NULL;
        if (!one) {
            one = new_listening(directive);
            if (!one)
                return -ENOMEM;
            mk_list_add(&s->open, &one->node);
#ifndef MK_LEAN
            err = mk__inherit_take(s, one, settings);
            if (err < 0)
                return err;
#endif
        }
        one->kept = true;
#ifndef MK_LEAN
        one->line = directive;
        settings->listen.items[*ret_nth].listening = one;
        if (one->fresh)
            set_way(one);
#endif
        err = open_sockets(s, one, settings, workers);
        if (err < 0)
            return err;
    }
    return 0;
}

#ifndef MK_LEAN
int mk__sockets_listen(struct mk__sockets *s, const struct mk__settings *settings)
{
    struct mk__listen_options options = mk__sockets_options(settings);
    struct mk_list *n, *save;
    int err = 0;
    MK_LIST_EACH(&s->open, n, save) {
        struct mk__listening *one = MK_OWNER(n, struct mk__listening, node);
        for (unsigned i = one->n_before; one->kept && i < one->n && err == 0; i++)
            err = mk__listen_start(one->fds[i], &one->addr, &options);
        if (err == 0)
            continue;
        mk_log_error("cannot listen on %.*s: %s", MK_STR_ARG(one->text), strerror(-err));
        break;
    }
    return err;
}
#endif

/* What may have changed for sockets that listen already: the backlog and its kind. */
static void renew_options(struct mk__listening *one, const struct mk__settings *settings)
{
    struct mk__listen_options options = mk__sockets_options(settings);
    for (unsigned i = 0; RELOADS && i < one->n; i++)
        mk__listen_start(one->fds[i], &one->addr, &options);
}

void mk__sockets_commit(struct mk__sockets *s, const struct mk__settings *settings)
{
    struct mk_list *n, *save;
    MK_LIST_EACH(&s->open, n, save) {
        struct mk__listening *one = MK_OWNER(n, struct mk__listening, node);
#ifndef MK_LEAN
        if (one->fresh)
            one->lent = one->borrowed;
        if (one->kept)
            set_way(one);
        one->line = NULL;
#endif
        one->fresh = false;
        if (one->kept) {
            renew_options(one, settings);
            continue;
        }
        mk_list_del(&one->node);
        mk_list_add(&s->gone, &one->node);
        close_listening(one);
    }
#ifndef MK_LEAN
    mk__inherit_release(s, true);
#endif
}

void mk__sockets_cancel(struct mk__sockets *s)
{
    struct mk_list *n, *save;
    MK_LIST_EACH(&s->open, n, save) {
        struct mk__listening *one = MK_OWNER(n, struct mk__listening, node);
        if (!one->fresh) {
            close_from(one, one->n_before);
            continue;
        }
        mk_list_del(&one->node);
        if (one->fds)
            close_listening(one);
        mk_account_free(NULL, one, 0);
    }
#ifndef MK_LEAN
    mk__inherit_release(s, false);
#endif
}

void mk__sockets_release(struct mk__sockets *s)
{
    free_all(&s->open);
    free_all(&s->gone);
}

int mk__sockets_of_worker(const struct mk__listening *one, unsigned index, unsigned workers, unsigned n)
{
    unsigned i = one->shared ? n : index + n * workers;
    return i < one->n ? one->fds[i] : -1;
}
