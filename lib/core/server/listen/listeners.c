// SPDX-License-Identifier: Apache-2.0
/*
 * Opens, keeps and closes the listening sockets (server/listen/listeners.h). The acceptors decide which loop watches
 * which socket.
 */
#include "server/listen/listeners.h"

#include "base/clock.h"
#include "net/port_owner.h"
#include "net/listen.h"

#include <monkey/base/arena.h>
#include <monkey/base/file.h>
#include <monkey/log.h>

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <unistd.h>

enum { RETIRE_PAUSE_US = 1000, RETIRE_MAX_MS = 250 };

void mk__listeners_init(struct mk__listeners *s)
{
    mk_list_init(&s->open);
    mk_list_init(&s->closed);
    mk_list_init(&s->inherited);
}

struct mk__listen_options mk__listeners_options(const struct mk__settings *settings)
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

/* ── one address ── */

static struct mk__listener *new_listener(const struct mk__listen_conf *directive)
{
    struct mk__listener *one = mk_account_alloc(NULL, sizeof(*one) + directive->text.len + 1);
    if (!one)
        return NULL;
    *one = (struct mk__listener){.configured = directive->addr,
                                 .addr = directive->addr,
                                 .shared = directive->addr.sa.sa_family == AF_UNIX,
                                 .rights = directive->rights,
                                 .state = MK__LISTENER_NEW};
    char *text = (char *)(one + 1);
    memcpy(text, directive->text.p, directive->text.len);
    text[directive->text.len] = '\0';
    one->name.text = mk_str(text, directive->text.len);
    return one;
}

static size_t count_fds_bytes(unsigned n)
{
    return n * sizeof(int);
}

static void close_fds(struct mk__listener *one, unsigned first)
{
    assert(first <= one->n);
    for (unsigned i = first; i < one->n; i++)
        close(one->fds[i]);
    one->n = first;
}

/* The path of a Unix socket is unlinked only if this process alone has it. */
static void close_listener(struct mk__listener *one)
{
    if (one->n && one->addr.sa.sa_family == AF_UNIX && one->owner == MK__LISTENER_OWNED)
        mk__listen_unlink(one->fds[0], one->addr.un.sun_path);
    close_fds(one, 0);
    mk_account_free(NULL, one->fds, 0);
    one->fds = NULL;
}

static void free_listeners(struct mk_list *list)
{
    while (!mk_list_empty(list)) {
        struct mk__listener *one = MK_LIST_FIRST(list, struct mk__listener, node);
        mk_list_del(&one->node);
        if (one->fds)
            close_listener(one);
        mk_account_free(NULL, one, 0);
    }
}

/* Another socket of ours, which this reload may close, has the address: `Listen 80` becomes `Listen 127.0.0.1:80`. */
static bool has_conflict(const struct mk__listeners *s, const struct mk__listener *one)
{
    MK_LIST_EACH_ITEM(&s->open, const struct mk__listener, node, other) {
        if (other != one && mk__addr_conflicts(&other->addr, &one->addr))
            return true;
    }
    return mk__inherited_conflicts(s, &one->addr);
}

/*
 * The first socket is bound without SO_REUSEPORT: a second server could take half of our connections otherwise. A
 * socket that joins others gets its share of the connections as soon as it listens. That is left to
 * mk__listeners_listen(), when a loop is sure to accept them.
 */
static int add_socket(const struct mk__listeners *s, struct mk__listener *one, struct mk__listen_options options)
{
    options.shared_port = one->n > 0 || has_conflict(s, one);
    int fd = mk__listen_bind(&one->addr, &options);
    if (fd < 0)
        return fd;
    int err = options.shared_port ? 0 : mk__listen_start(fd, &one->addr, &options);
    if (err < 0) {
        close(fd);
        return err;
    }
    one->fds[one->n++] = fd;
    return 0;
}

/* Root gives a Unix socket to the user that the server will be, which may change it at a reload then. */
static struct mk__listen_rights get_first_rights(const struct mk__listener *one, const struct mk__settings *settings)
{
    struct mk__listen_rights rights = one->rights;
    if (geteuid() != 0 || !settings->user.name.p)
        return rights;
    if (rights.user == MK__LISTEN_DEFAULT)
        rights.user = settings->user.id;
    if (rights.group == MK__LISTEN_DEFAULT)
        rights.group = settings->group.name.p ? settings->group.id : settings->user.group;
    return rights;
}

static int open_sockets(const struct mk__listeners *s, struct mk__listener *one, const struct mk__settings *settings,
                        unsigned workers)
{
    struct mk__listen_options options = mk__listeners_options(settings);
    struct mk__listen_rights rights = get_first_rights(one, settings);
    options.rights = &rights;
    unsigned n = one->shared ? 1 : workers;
    assert(one->state != MK__LISTENER_UNCLAIMED && workers > 0);
    int err = 0;
    if (one->n >= n)
        return 0;
    int *fds = mk_account_alloc(NULL, count_fds_bytes(n));
    if (!fds)
        return -ENOMEM;
    if (one->n)
        memcpy(fds, one->fds, count_fds_bytes(one->n));
    mk_account_free(NULL, one->fds, 0);
    one->fds = fds;
    while (one->n < n && err == 0)
        err = add_socket(s, one, options);
    if (one->n && (err == -EACCES || err == -EPERM || err == -EADDRINUSE)) {
        one->shared = true; /* inherited, or bound as root: the workers share what there is */
        return 0;
    }
    return err;
}

static void set_mode(struct mk__listener *one)
{
    atomic_store_explicit(&one->transport, one->conf->mode.transport, memory_order_relaxed);
    atomic_store_explicit(&one->proxy, one->conf->mode.proxy, memory_order_relaxed);
}

struct mk__listen_mode mk__listeners_mode(const struct mk__listener *one)
{
    return (struct mk__listen_mode){.transport = atomic_load_explicit(&one->transport, memory_order_relaxed),
                                    .proxy = atomic_load_explicit(&one->proxy, memory_order_relaxed)};
}

/* ── all of them ── */

/* Returns the one that was configured so, or the one that the system has bound to this address for port 0; or NULL. */
static struct mk__listener *find_listener(struct mk__listeners *s, const struct mk__listen_conf *directive)
{
    struct mk__listener *bound = NULL;
    MK_LIST_EACH_ITEM(&s->open, struct mk__listener, node, one) {
        if (one->state != MK__LISTENER_UNCLAIMED)
            continue;
        if (mk__addr_equal(&one->configured, &directive->addr))
            return one;
        if (mk__addr_equal(&one->addr, &directive->addr))
            bound = one;
    }
    return bound;
}

int mk__listeners_prepare(struct mk__listeners *s, const struct mk__settings *settings, unsigned workers,
                          unsigned *ret_nth)
{
    int err = 0;
    mk__announce_begin(&s->names);
    MK_LIST_EACH_ITEM(&s->open, struct mk__listener, node, one) {
        one->state = MK__LISTENER_UNCLAIMED;
        one->n_before = one->n;
    }
    for (*ret_nth = 0; *ret_nth < settings->listen.n; ++*ret_nth) {
        const struct mk__listen_conf *directive = &settings->listen.items[*ret_nth];
        struct mk__listener *one = find_listener(s, directive);
        if (!one) {
            one = new_listener(directive);
            if (!one)
                return -ENOMEM;
            mk_list_add(&s->open, &one->node);
            err = mk__inherited_take(s, one, settings);
            if (err < 0)
                return err;
        }
        if (one->state == MK__LISTENER_UNCLAIMED)
            one->state = MK__LISTENER_CLAIMED;
        one->conf = directive;
        settings->listen.items[*ret_nth].listener = one;
        if (one->state == MK__LISTENER_NEW)
            set_mode(one);
        err = open_sockets(s, one, settings, workers);
        if (err < 0)
            return err;
    }
    return 0;
}

/* A right that is no longer configured becomes that of a new socket. */
static uint32_t choose_right(uint32_t now, uint32_t before, uint32_t own)
{
    return now == MK__LISTEN_DEFAULT && before != MK__LISTEN_DEFAULT ? own : now;
}

/* Sets the rights of a Unix socket that are not as before. Returns 0 or -errno. */
static int update_rights(struct mk__listener *one)
{
    const struct mk__listen_rights *before = &one->rights, *now = one->conf ? &one->conf->rights : before;
    if (one->addr.sa.sa_family != AF_UNIX || one->owner == MK__LISTENER_EXTERNAL ||
        memcmp(before, now, sizeof(*now)) == 0)
        return 0;
    struct mk__listen_rights next = {choose_right(now->mode, before->mode, mk__listen_default_mode()),
                                     choose_right(now->user, before->user, geteuid()),
                                     choose_right(now->group, before->group, getegid())};
    int err = mk__listen_set_rights(one->addr.un.sun_path, &next,
                                    before->user != MK__LISTEN_DEFAULT ? before->user : geteuid());
    if (err == -ENOENT) { /* no client can connect, but that is no reason to refuse a configuration */
        mk_log_warn("the path of %.*s is gone: a restart makes it again", MK_STR_ARG(one->name.text));
        return 0;
    }
    if (err < 0)
        mk_log_error("cannot change the mode, user or group of %.*s: %s", MK_STR_ARG(one->name.text),
                     mk_file_error(err));
    else
        one->rights = *now;
    return err;
}

/* Updates the rights of all sockets that are new, or of all others. Returns 0 or -errno. */
static int update_all_rights(struct mk__listeners *s, bool of_new)
{
    int err = 0;
    MK_LIST_EACH_ITEM(&s->open, struct mk__listener, node, one) {
        if (err == 0 && (one->state == MK__LISTENER_NEW) == of_new)
            err = update_rights(one);
    }
    return err;
}

/* Those that are new listen with their rights. Those that are in use keep the former ones until all listen. */
int mk__listeners_listen(struct mk__listeners *s, const struct mk__settings *settings)
{
    struct mk__listen_options options = mk__listeners_options(settings);
    int err = update_all_rights(s, true);
    if (err < 0)
        return err;
    MK_LIST_EACH_ITEM(&s->open, struct mk__listener, node, one) {
        for (unsigned i = one->n_before; one->state != MK__LISTENER_UNCLAIMED && i < one->n && err == 0; i++)
            err = mk__listen_start(one->fds[i], &one->addr, &options);
        if (err == 0)
            continue;
        mk_log_error("cannot listen on %.*s: %s", MK_STR_ARG(one->name.text), strerror(-err));
        break;
    }
    return err < 0 ? err : update_all_rights(s, false);
}

/* Sockets that listen already take the new backlog and socket options. */
static void update_options(struct mk__listener *one, const struct mk__settings *settings)
{
    struct mk__listen_options options = mk__listeners_options(settings);
    for (unsigned i = 0; i < one->n; i++)
        mk__listen_start(one->fds[i], &one->addr, &options);
}

/* Returns whether the sockets of a listener get no new connections from now on. */
static bool retire_listener(const struct mk__listener *one)
{
    bool retired = false;
    if (one->state != MK__LISTENER_UNCLAIMED || one->owner != MK__LISTENER_OWNED || one->addr.sa.sa_family == AF_UNIX)
        return false;
    for (unsigned i = 0; i < one->n; i++)
        retired |= mk__listen_retire(one->fds[i]) == 0;
    return retired;
}

/*
 * Handshakes that have not ended yet end in the queue of a retired socket. A packet may be under way to the socket in
 * another processor, so a pause comes before the first look.
 */
static void wait_for_handshakes(const struct mk__addr *addr, uint64_t until_ms)
{
    struct mk__handshakes waited;
    usleep(RETIRE_PAUSE_US);
    mk__handshakes_find(&waited, addr);
    while (waited.n && mk__clock_system.now_ms(NULL) < until_ms) {
        usleep(RETIRE_PAUSE_US);
        mk__handshakes_update(&waited, addr);
    }
}

void mk__listeners_retire(struct mk__listeners *s)
{
    uint64_t until_ms = mk__clock_system.now_ms(NULL) + RETIRE_MAX_MS;
    MK_LIST_EACH_ITEM(&s->open, struct mk__listener, node, one) {
        if (retire_listener(one) && mk__clock_system.now_ms(NULL) < until_ms)
            wait_for_handshakes(&one->addr, until_ms);
    }
}

/* Names the sockets that are open now. */
static void announce_sockets(struct mk__listeners *s)
{
    mk__announce_clear(&s->names);
    MK_LIST_EACH_ITEM(&s->open, const struct mk__listener, node, one) {
        for (unsigned i = 0; i < one->n; i++)
            mk__announce_add(&s->names, one->fds[i]);
    }
    mk__announce_end(&s->names);
}

void mk__listeners_commit(struct mk__listeners *s, const struct mk__settings *settings)
{
    MK_LIST_EACH_ITEM(&s->open, struct mk__listener, node, one) {
        if (one->state == MK__LISTENER_NEW && one->owner == MK__LISTENER_SHARED)
            one->owner = MK__LISTENER_OWNED; /* the process that it was inherited from leaves it */
        if (one->state != MK__LISTENER_UNCLAIMED) {
            set_mode(one);
            one->conf = NULL;
            one->state = MK__LISTENER_CLAIMED;
            update_options(one, settings);
            continue;
        }
        mk_list_del(&one->node);
        mk_list_add(&s->closed, &one->node);
        close_listener(one);
    }
    mk__inherited_release(s, true);
    announce_sockets(s);
}

void mk__listeners_cancel(struct mk__listeners *s)
{
    MK_LIST_EACH_ITEM(&s->open, struct mk__listener, node, one) {
        if (one->state != MK__LISTENER_NEW) {
            close_fds(one, one->n_before);
            continue;
        }
        mk_list_del(&one->node);
        if (one->fds)
            close_listener(one);
        mk_account_free(NULL, one, 0);
    }
    mk__inherited_release(s, false);
    announce_sockets(s);
}

void mk__listeners_release(struct mk__listeners *s)
{
    mk__announce_close(&s->names);
    free_listeners(&s->open);
    free_listeners(&s->closed);
}

int mk__listeners_worker_fd(const struct mk__listener *one, unsigned index, unsigned workers, unsigned n)
{
    assert(index < workers);
    unsigned i = one->shared ? n : index + n * workers;
    return i < one->n ? one->fds[i] : -1;
}
