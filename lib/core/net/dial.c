// SPDX-License-Identifier: Apache-2.0
/*
 * Outgoing connections (monkey/base/dial.h). Each step runs as a callback of the loop:
 *
 *     on_task ─► (the name is resolved) ─► try_next ◄─ an attempt has failed, or it is time for the next one
 *                                             └─► connected, all have failed, or timeout ─► finish_dial
 */
#include <monkey/base/dial.h>

#include "loop/loop.h"
#include "net/addr.h"
#include "net/resolver.h"

#include <assert.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    STAGGER_MS = 250, /* RFC 8305 section 5: "Connection Attempt Delay" */
    RETRY_MS = 20,    /* a Unix socket's queue is full: the kernel does not wait in a non-blocking connect(2) */
    N_ATTEMPTS = 2,
};

/* The public header has these types as void pointers. */
static const struct mk__addr *get_addrs(const struct mk_dial *d)
{
    return d->addrs;
}

static void close_attempt(struct mk_dial *d, struct mk_dial_attempt *a)
{
    if (a->event.fd < 0)
        return;
    mk_event_del(d->loop, &a->event);
    close(a->event.fd);
    a->event.fd = -1;
}

void mk_dial_cancel(struct mk_dial *d)
{
    if (!d->loop)
        return;
    mk_timer_cancel(&d->timer);
    mk_task_cancel(&d->task);
    for (unsigned i = 0; i < N_ATTEMPTS; i++)
        close_attempt(d, &d->attempts[i]);
    if (d->name)
        mk__resolver_put(d->name);
    d->name = NULL;
    d->loop = NULL;
}

/* Ends the dial. The callback may free `d`: do not access it after this call. */
static void finish_dial(struct mk_dial *d, int result)
{
    assert(d->loop);
    mk_dial_cancel(d);
    d->fn(d, result);
}

/* ── one attempt ── */

static int set_option(int fd, int level, int name)
{
    int on = 1;
    return setsockopt(fd, level, name, &on, sizeof(on)) < 0 ? -errno : 0;
}

static int prepare_socket(const struct mk_dial *d, int fd, const struct mk__addr *addr)
{
    const struct mk__addr *local = d->options.local ? d->options.local->addr : NULL;
    if (addr->sa.sa_family == AF_UNIX)
        return 0;
    set_option(fd, IPPROTO_TCP, TCP_NODELAY);
    if (mk__addr_is_local(addr)) /* nothing is lost there: the simplest way to control congestion costs the least */
        setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
    if (d->options.fast_open)
        set_option(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT); /* without support for it this is a usual connection */
    if (!d->options.local)
        return 0;
    if (!local || local->sa.sa_family != addr->sa.sa_family)
        return -EAFNOSUPPORT;
    set_option(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT); /* one local port can then serve many destinations */
    return bind(fd, &local->sa, local->len) < 0 ? -errno : 0;
}

static int connect_to(struct mk_dial *d, struct mk_dial_attempt *a, const struct mk__addr *addr)
{
    int err = prepare_socket(d, a->event.fd, addr);
    if (err == 0)
        err = connect(a->event.fd, &addr->sa, addr->len) < 0 ? -errno : 0;
    if (err != -EINPROGRESS)
        return err;
    err = mk_event_add(d->loop, &a->event, EPOLLOUT);
    return err < 0 ? err : MK_AGAIN;
}

/* Starts connecting to the next address. Returns 0 (connected), MK_AGAIN (in progress) or -errno. */
static int begin_attempt(struct mk_dial *d, struct mk_dial_attempt *a)
{
    assert(a->event.fd < 0 && d->at < d->n);
    struct mk__addr addr = get_addrs(d)[d->at];
    mk__addr_set_port(&addr, d->target->port);
    a->event.fd = socket(addr.sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (a->event.fd < 0)
        return -errno;
    int err = connect_to(d, a, &addr);
    if (err < 0) {
        close(a->event.fd);
        a->event.fd = -1;
    }
    return err;
}

/* ── all attempts ── */

static bool is_busy(const struct mk_dial *d)
{
    return d->attempts[0].event.fd >= 0 && d->attempts[1].event.fd >= 0;
}

/* Returns a free attempt; if both are in use, gives up the older one. */
static struct mk_dial_attempt *take_attempt(struct mk_dial *d)
{
    unsigned index = is_busy(d) ? d->older : d->attempts[0].event.fd >= 0;
    d->older = !index;
    close_attempt(d, &d->attempts[index]);
    return &d->attempts[index];
}

/*
 * Arms the timer for the next attempt, or for the timeout. The remaining time is divided among the remaining addresses.
 */
static void arm_timer(struct mk_dial *d)
{
    uint64_t now = mk_loop_now_ms(d->loop), left = d->deadline_ms > now ? d->deadline_ms - now : 0;
    if (d->at < d->n) {
        uint64_t most = get_addrs(d)->sa.sa_family == AF_UNIX ? RETRY_MS : is_busy(d) ? left : STAGGER_MS;
        left /= (unsigned)(d->n - d->at) + 1;
        left = left > most ? most : left ? left : 1;
    }
    mk_timer_arm(d->loop, &d->timer, (uint32_t)left);
}

/* Connects to the next address; skips those that fail at once. */
static void try_next(struct mk_dial *d)
{
    int err = MK_AGAIN;
    while (d->at < d->n && err != 0) {
        struct mk_dial_attempt *a = take_attempt(d);
        err = begin_attempt(d, a);
        if (err == -EAGAIN && get_addrs(d)[d->at].sa.sa_family == AF_UNIX)
            break;
        d->at++;
        if (err == 0) {
            int fd = a->event.fd;
            a->event.fd = -1;
            finish_dial(d, fd);
            return;
        }
        if (err == MK_AGAIN)
            break;
        d->err = err;
    }
    if (d->at == d->n && d->attempts[0].event.fd < 0 && d->attempts[1].event.fd < 0)
        finish_dial(d, d->err);
    else
        arm_timer(d);
}

static void on_ready(struct mk_event *event, uint32_t events)
{
    struct mk_dial *d = MK_CONTAINER_OF(event, struct mk_dial_attempt, event)->dial;
    int fd = event->fd, err = 0;
    socklen_t len = sizeof(err);
    (void)events;
    mk_event_del(d->loop, event);
    event->fd = -1;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len) < 0)
        err = errno;
    if (!err) {
        finish_dial(d, fd);
        return;
    }
    close(fd);
    d->err = -err;
    try_next(d);
}

static void on_timer(struct mk_timer *timer)
{
    struct mk_dial *d = MK_CONTAINER_OF(timer, struct mk_dial, timer);
    if (mk_loop_now_ms(d->loop) >= d->deadline_ms)
        finish_dial(d, -ETIMEDOUT);
    else
        try_next(d);
}

/* Runs when the dial starts, and again when the name is resolved. */
static void on_task(struct mk_task *task)
{
    struct mk_dial *d = MK_CONTAINER_OF(task, struct mk_dial, task);
    int err = 0;
    d->n = 1;
    d->addrs = d->target->addr;
    if (!d->addrs) {
        struct mk__resolver_entry *name = d->name;
        if (!name)
            err = mk__resolver_get(d->loop, d->target->host, task, &name);
        d->name = name;
        if (err == MK_AGAIN)
            return;
        if (err == 0)
            err = name->err;
        if (err < 0) {
            finish_dial(d, err);
            return;
        }
        d->n = (uint8_t)name->n;
        d->addrs = name->addrs;
    }
    try_next(d);
}

void mk_dial_start(struct mk_dial *d, struct mk_loop *loop, const struct mk_dial_target *target,
                   const struct mk_dial_options *options, mk_dial_fn fn)
{
    assert(target && fn && (target->addr || target->host.len));
    *d = (struct mk_dial){.loop = loop, .target = target, .fn = fn};
    if (options)
        d->options = *options;
    if (!d->options.timeout_ms)
        d->options.timeout_ms = MK_DIAL_TIMEOUT_MS;
    for (unsigned i = 0; i < N_ATTEMPTS; i++)
        d->attempts[i] = (struct mk_dial_attempt){.event = {.ready = on_ready, .fd = -1}, .dial = d};
    d->deadline_ms = mk_loop_now_ms(loop) + d->options.timeout_ms;
    mk_timer_init(&d->timer, on_timer);
    mk_timer_arm(loop, &d->timer, d->options.timeout_ms);
    mk_task_init(&d->task, on_task);
    mk_task_schedule(loop, &d->task);
}

const char *mk_dial_error(int err)
{
    switch (err) {
    case -ENXIO:
        return "the name has no address";
    case -EAGAIN:
        return "no name server answers";
    case -EBUSY:
        return "too many names are being looked up";
    case -ETIMEDOUT:
        return "no connection within its time";
    default:
        return strerror(-err);
    }
}

/* ── targets ── */

enum { NAME_BYTES_MAX = 253, LABEL_BYTES_MAX = 63 }; /* RFC 1035 section 2.3.4, without the length bytes */

struct dial_target {
    struct mk_dial_target public;
    struct mk__addr addr;
};

/*
 * Returns whether `s` is a name. A last label of digits only is an error: the resolver would take "127.1" for an
 * address.
 */
static bool is_name(struct mk_str s)
{
    size_t label = 0, digits = 0;
    if (s.len && s.p[s.len - 1] == '.')
        s.len--;
    for (size_t i = 0; i < s.len; i++) {
        if (s.p[i] == '.' && label) {
            label = digits = 0;
            continue;
        }
        if (!mk_is_name_byte(s.p[i], "-_") || (s.p[i] == '-' && !label) || ++label > LABEL_BYTES_MAX)
            return false;
        digits += mk_is_digit(s.p[i]);
    }
    return s.len <= NAME_BYTES_MAX && label > digits;
}

/* Returns NULL or a phrase that says what is wrong. */
static const char *read_host(struct mk_dial_target *t, struct mk__addr *addr)
{
    if (mk__addr_parse_host(t->host, addr) == 0) {
        mk__addr_set_port(addr, t->port);
        t->addr = addr;
    } else if (t->host.len && t->host.p[0] == '[') {
        return "there must be an IPv6 address in the brackets: [::1]:80";
    } else if (!is_name(t->host)) {
        return "this is neither an address nor a name: 192.0.2.1:80, [2001:db8::1]:80, example.org:80 or unix:/path";
    }
    if (t->host.p[0] == '[')
        t->host = mk_str(t->host.p + 1, t->host.len - 2);
    return NULL;
}

static const char *read_tcp(struct mk_dial_target *t, struct mk__addr *addr, int default_port)
{
    struct mk_str text = t->text;
    const char *bracket = text.len && text.p[0] == '[' ? memchr(text.p, ']', text.len) : NULL;
    const char *from = bracket ? bracket : text.p, *end = text.p + text.len;
    const char *colon = text.len ? memchr(from, ':', (size_t)(end - from)) : NULL;
    uint64_t port = (uint64_t)default_port;
    if (text.len && text.p[0] == '/')
        return "a socket's path begins with unix: unix:/run/app.sock";
    if (!colon && default_port == MK_DIAL_PORT_REQUIRED)
        return "the port is missing: example.org:80";
    if (colon && !bracket && memchr(colon + 1, ':', (size_t)(end - colon - 1)))
        return "an IPv6 address needs brackets: [::1]:80";
    if (colon && (!mk_str_u64(mk_str(colon + 1, (size_t)(end - colon - 1)), UINT16_MAX, &port) || port == 0))
        return "the port must be a number from 1 to 65535";
    t->port = (uint16_t)port;
    t->host = mk_str(text.p, (size_t)((colon ? colon : end) - text.p));
    return read_host(t, addr);
}

static const char *read_target(struct mk_dial_target *t, struct mk__addr *addr, int default_port)
{
    const char *wrong = NULL;
    if (!mk_str_starts(t->text, MK_STR("unix:")))
        return read_tcp(t, addr, default_port);
    if (mk__addr_parse(t->text, addr, &wrong) < 0)
        return wrong;
    t->host = mk_str_after(t->text, 5);
    t->addr = addr;
    return NULL;
}

int mk_dial_target_parse(struct mk_arena *arena, struct mk_str text, int default_port,
                         const struct mk_dial_target **ret_target, const char **ret_error)
{
    assert(ret_target && ret_error);
    struct dial_target *target = mk_arena_zalloc(arena, sizeof(*target));
    struct mk_str copy = mk_arena_dup(arena, text);
    if (!target || !copy.p) {
        *ret_error = "out of memory";
        return -ENOMEM;
    }
    target->public.text = copy;
    const char *wrong = read_target(&target->public, &target->addr, default_port);
    if (wrong) {
        *ret_error = wrong;
        return -EINVAL;
    }
    *ret_target = &target->public;
    return 0;
}
