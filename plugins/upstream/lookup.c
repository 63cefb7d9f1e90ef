// SPDX-License-Identifier: Apache-2.0
/*
 * A lookup: questions and answers, through a channel of c-ares, whose sockets are watched in a loop, or while the
 * caller is blocked.
 */
#include "conf.h"
#include "dns_answer.h"

#include <monkey/base/arena.h>
#include <monkey/base/poll.h>
#include <monkey/base/time.h>

#include <ares.h>
#include <errno.h>
#include <netdb.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/time.h>

enum {
    TRY_MS = 700,     /* for the first answer of a name server; twice as long in the next round */
    TRIES = 3,        /* of each name server */
    PENDING_MAX = 32, /* questions at the same time: name servers drop what comes in large bursts */
    FAMILIES = 2,
};

enum { LOOKUP_SOCKETS_MAX = ARES_GETSOCK_MAXNUM - 1 }; /* the macros shift the last one into the sign */

/* What an SRV record names; of a lookup without SRV the one name. */
struct target {
    uint16_t priority, weight, port;
    char host[DNS_NAME_BYTES_MAX + 1];
};

struct question {
    struct lookup *lookup;
    const struct target *target; /* NULL: the question for SRV records */
    uint16_t type;               /* enum dns_type */
};

/* A socket of c-ares. */
struct lookup_socket {
    struct mk_event event; /* fd < 0: free */
    struct lookup *lookup;
};

struct lookup {
    const struct lookup_query *query;
    ares_channel channel; /* NULL: not opened */
    struct target *targets;
    struct question *questions; /* for the addresses of the targets */
    struct question srv;
    unsigned n_targets, n_questions, asked, pending; /* asked: of `questions` */
    bool is_asking, has_ended;
    int answer, failure; /* of c-ares: why there are no addresses, and why an answer is missing */
    struct lookup_result result;
    /* of lookup_start() */
    struct mk_loop *loop; /* NULL: lookups_wait() */
    lookup_fn fn;
    void *ctx;
    uint64_t deadline_ms;
    struct mk_timer timer;
    struct mk_task task;
    struct lookup_socket sockets[LOOKUP_SOCKETS_MAX];
    unsigned n_polled; /* of lookups_wait(): its sockets */
};

static const struct {
    int status;
    const char *why;
} phrases[] = {
    {ARES_ENODATA, "the name has no address"},
    {ARES_ENOTFOUND, "there is no such name"},
    {ARES_ETIMEOUT, "no name server answers"},
    {ARES_ECANCELLED, "no name server answers in time"},
    {ARES_ECONNREFUSED, "no name server can answer"}, /* not reached, SERVFAIL, REFUSED and the like */
    {ARES_EBADRESP, "the answer of the name server is malformed"},
};

static const char *find_phrase(int status)
{
    for (size_t i = 0; i < MK_COUNT_OF(phrases); i++)
        if (phrases[i].status == status)
            return phrases[i].why;
    return ares_strerror(status);
}

/* ── addresses ── */

static int compare_addresses(const struct lookup_address *a, const struct lookup_address *b)
{
    if (a->priority != b->priority)
        return a->priority < b->priority ? -1 : 1;
    if (a->address.family != b->address.family)
        return a->address.family < b->address.family ? -1 : 1;
    int order = memcmp(a->address.bytes, b->address.bytes, sizeof(a->address.bytes));
    return order ? order : (int)a->address.port - (int)b->address.port;
}

/* Finds the place of an address in the order. */
static unsigned find_place(const struct lookup_result *r, const struct lookup_address *one)
{
    unsigned low = 0, high = r->n;
    while (low < high) {
        unsigned middle = (low + high) / 2;
        if (compare_addresses(&r->addresses[middle], one) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void lookup_add(struct lookup_result *r, const struct lookup_address *one)
{
    unsigned at = find_place(r, one);
    if (at < r->n && compare_addresses(&r->addresses[at], one) == 0)
        return;
    r->has_more |= r->n == LOOKUP_ADDRESSES_MAX;
    if (r->n == LOOKUP_ADDRESSES_MAX)
        return;
    memmove(&r->addresses[at + 1], &r->addresses[at], (r->n++ - at) * sizeof(*one));
    r->addresses[at] = *one;
}

static void add_address(struct lookup_result *r, const struct target *target, int family, const void *bytes)
{
    struct lookup_address one = {.priority = target->priority, .weight = target->weight};
    mk_address_set(&one.address, family, bytes, target->port);
    lookup_add(r, &one);
}

void lookup_print(const struct mk_address *address, struct mk_buf *out)
{
    bool has_brackets = address->family == AF_INET6;
    mk_buf_adds(out, has_brackets ? MK_STR("[") : MK_STR(""));
    mk_address_print(address, out);
    mk_buf_addf(out, "%s:%u", has_brackets ? "]" : "", address->port);
}

/* ── the end ── */

static void end_lookup(struct lookup *l)
{
    struct lookup_result *r = &l->result;
    r->status = r->n ? LOOKUP_OK : l->failure ? LOOKUP_FAILED : LOOKUP_NO_ADDRESS;
    if (!r->n)
        r->why = find_phrase(l->failure ? l->failure : l->answer ? l->answer : ARES_ENODATA);
    l->has_ended = true;
}

/* A question has no addresses as its answer, or no answer. */
static void note_status(struct lookup *l, uint16_t type, int status)
{
    if (status == ARES_ENOTFOUND || status == ARES_ENODATA) {
        l->answer = status;
        return;
    }
    l->failure = status;
    l->result.failed_ipv4 |= type != DNS_AAAA;
    l->result.failed_ipv6 |= type != DNS_A;
}

/* ── questions ── */

static void ask_more(struct lookup *l);

/* Makes the questions for the addresses of the targets. Returns 0 or -ENOMEM. */
static int make_questions(struct lookup *l)
{
    static const uint16_t types[FAMILIES] = {DNS_A, DNS_AAAA};
    int family = l->query->family;
    l->questions = l->n_targets ? mk_account_alloc(NULL, l->n_targets * FAMILIES * sizeof(*l->questions)) : NULL;
    if (l->n_targets && !l->questions)
        return -ENOMEM;
    for (unsigned i = 0; i < l->n_targets * FAMILIES; i++)
        if (family == LOOKUP_ANY || family == (int)(LOOKUP_IPV4 + i % FAMILIES))
            l->questions[l->n_questions++] = (struct question){l, &l->targets[i / FAMILIES], types[i % FAMILIES]};
    return 0;
}

static int make_targets(struct lookup *l, unsigned n)
{
    l->targets = n ? mk_account_alloc(NULL, n * sizeof(*l->targets)) : NULL;
    return n && !l->targets ? -ENOMEM : 0;
}

static void count_record(const struct dns_record *record, void *ctx)
{
    (void)record;
    (void)ctx;
}

static void add_target(const struct dns_record *record, void *ctx)
{
    struct lookup *l = ctx;
    if (!record->target.len || !record->port) /* there is no service, or none that could be reached */
        return;
    l->result.has_more |= l->n_targets == LOOKUP_ADDRESSES_MAX;
    if (l->n_targets == LOOKUP_ADDRESSES_MAX)
        return;
    struct target *target = &l->targets[l->n_targets++];
    *target = (struct target){.priority = record->priority, .weight = record->weight, .port = record->port};
    memcpy(target->host, record->target.p, record->target.len);
    l->result.ttl_s = record->ttl_s < l->result.ttl_s ? record->ttl_s : l->result.ttl_s;
}

/* Returns a status of c-ares. */
static int take_targets(struct lookup *l, struct mk_str message)
{
    int n = dns_answer_each(message, DNS_SRV, count_record, NULL);
    if (n < 0)
        return ARES_EBADRESP;
    if (make_targets(l, n < LOOKUP_ADDRESSES_MAX ? (unsigned)n : LOOKUP_ADDRESSES_MAX) < 0)
        return ARES_ENOMEM;
    dns_answer_each(message, DNS_SRV, add_target, l);
    return make_questions(l) < 0 ? ARES_ENOMEM : l->n_targets ? ARES_SUCCESS : ARES_ENODATA;
}

static void add_record(const struct dns_record *record, void *ctx)
{
    const struct question *q = ctx;
    struct lookup_result *r = &q->lookup->result;
    add_address(r, q->target, q->type == DNS_A ? AF_INET : AF_INET6, record->address);
    r->ttl_s = record->ttl_s < r->ttl_s ? record->ttl_s : r->ttl_s;
}

static int take_addresses(struct question *q, struct mk_str message)
{
    int n = dns_answer_each(message, q->type, add_record, q);
    return n > 0 ? ARES_SUCCESS : n < 0 ? ARES_EBADRESP : ARES_ENODATA;
}

static void on_answer(void *ctx, int status, int timeouts, unsigned char *bytes, int len)
{
    struct question *q = ctx;
    struct lookup *l = q->lookup;
    struct mk_str message = {(const char *)bytes, len > 0 ? (size_t)len : 0};
    (void)timeouts;
    l->pending--;
    if (l->has_ended)
        return;
    if (status == ARES_SUCCESS)
        status = q->target ? take_addresses(q, message) : take_targets(l, message);
    if (status != ARES_SUCCESS)
        note_status(l, q->type, status);
    ask_more(l);
}

static void send_question(struct question *q)
{
    struct lookup *l = q->lookup;
    l->pending++;
    ares_search(l->channel, q->target ? q->target->host : l->query->host, DNS_CLASS_IN, q->type, on_answer, q);
}

/* Answers may come within the calls that ask. */
static void ask_more(struct lookup *l)
{
    if (l->is_asking)
        return;
    l->is_asking = true;
    while (l->asked < l->n_questions && l->pending < PENDING_MAX)
        send_question(&l->questions[l->asked++]);
    l->is_asking = false;
    if (!l->pending)
        end_lookup(l);
}

/* Gives up the questions without an answer. */
static void expire_lookup(struct lookup *l)
{
    l->asked = l->n_questions;
    if (!l->has_ended)
        note_status(l, DNS_SRV, ARES_ECANCELLED);
    if (l->channel)
        ares_cancel(l->channel);
}

/* Returns how long c-ares can wait for a socket, at most `most`. */
static uint32_t get_wait(struct lookup *l, uint64_t most)
{
    struct timeval limit = {(time_t)(most / 1000), (suseconds_t)(most % 1000 * 1000)}, storage;
    const struct timeval *wait = ares_timeout(l->channel, &limit, &storage);
    return (uint32_t)(wait->tv_sec * 1000 + (wait->tv_usec + 999) / 1000);
}

/* ── in a loop ── */

/* After a call that may have ended the lookup. */
static void continue_lookup(struct lookup *l)
{
    uint64_t now = mk_loop_now_ms(l->loop);
    if (l->has_ended) {
        mk_timer_cancel(&l->timer);
        mk_task_schedule(l->loop, &l->task);
        return;
    }
    mk_timer_arm(l->loop, &l->timer, get_wait(l, l->deadline_ms > now ? l->deadline_ms - now : 0));
}

static void on_event(struct mk_event *event, uint32_t events)
{
    struct lookup *l = MK_CONTAINER_OF(event, struct lookup_socket, event)->lookup;
    int fd = event->fd;
    ares_process_fd(l->channel, events & ~(uint32_t)EPOLLOUT ? fd : ARES_SOCKET_BAD,
                    events & EPOLLOUT ? fd : ARES_SOCKET_BAD);
    continue_lookup(l);
}

static void on_timer(struct mk_timer *timer)
{
    struct lookup *l = MK_CONTAINER_OF(timer, struct lookup, timer);
    if (mk_loop_now_ms(l->loop) >= l->deadline_ms)
        expire_lookup(l);
    else
        ares_process_fd(l->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    continue_lookup(l);
}

static void on_end(struct mk_task *task)
{
    struct lookup *l = MK_CONTAINER_OF(task, struct lookup, task);
    l->fn(l, l->ctx);
}

static struct lookup_socket *find_socket(struct lookup *l, int fd)
{
    for (unsigned i = 0; i < LOOKUP_SOCKETS_MAX; i++)
        if (l->sockets[i].event.fd == fd)
            return &l->sockets[i];
    return NULL;
}

/*
 * c-ares opens, changes or closes a socket (ares_sock_state_cb). One that cannot be watched is as one without an
 * answer.
 */
static void on_socket(void *ctx, int fd, int readable, int writable)
{
    struct lookup *l = ctx;
    uint32_t events = (readable ? EPOLLIN : 0u) | (writable ? EPOLLOUT : 0u);
    if (!l->loop)
        return;
    struct lookup_socket *socket = find_socket(l, fd);
    if (socket && events) {
        mk_event_change(l->loop, &socket->event, events);
    } else if (socket) {
        mk_event_del(l->loop, &socket->event);
        socket->event.fd = -1;
    } else if (events && (socket = find_socket(l, -1))) {
        *socket = (struct lookup_socket){.event = {.ready = on_event, .fd = fd}, .lookup = l};
        if (mk_event_add(l->loop, &socket->event, events) < 0)
            socket->event.fd = -1;
    }
}

/* ── the channel ── */

static int set_servers(struct lookup *l)
{
    const struct lookup_servers *servers = &l->query->servers;
    struct ares_addr_port_node nodes[LOOKUP_SERVERS_MAX] = {0};
    for (unsigned i = 0; i < servers->n; i++) {
        const struct mk_address *from = &servers->items[i];
        nodes[i].next = i + 1 < servers->n ? &nodes[i + 1] : NULL;
        nodes[i].family = from->family;
        memcpy(&nodes[i].addr, from->bytes, from->family == AF_INET ? 4 : 16);
        nodes[i].udp_port = nodes[i].tcp_port = from->port;
    }
    return servers->n ? ares_set_servers_ports(l->channel, nodes) : ARES_SUCCESS;
}

static int open_channel(struct lookup *l)
{
    struct ares_options options = {.timeout = TRY_MS,
                                   .tries = TRIES,
                                   .sock_state_cb = on_socket,
                                   .sock_state_cb_data = l};
    int mask = ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_SOCK_STATE_CB;
    int status = ares_init_options(&l->channel, &options, mask);
    if (status != ARES_SUCCESS)
        l->channel = NULL;
    return status == ARES_SUCCESS ? set_servers(l) : status;
}

/* Takes the addresses of the system's file of hosts. Returns whether it has some. */
static bool read_hosts(struct lookup *l)
{
    static const int families[FAMILIES] = {AF_INET, AF_INET6};
    for (unsigned i = 0; i < FAMILIES; i++) {
        struct hostent *found;
        if ((l->query->family != LOOKUP_ANY && l->query->family != (int)(LOOKUP_IPV4 + i)) ||
            ares_gethostbyname_file(l->channel, l->query->host, families[i], &found) != ARES_SUCCESS)
            continue;
        for (char **at = found->h_addr_list; *at; at++)
            add_address(&l->result, l->targets, families[i], *at);
        ares_free_hostent(found);
    }
    return l->result.n > 0;
}

/* Prepares the one target of a lookup without SRV. */
static int begin_host(struct lookup *l)
{
    size_t len = strlen(l->query->host);
    if (len >= sizeof(l->targets->host))
        return ARES_EBADNAME;
    if (make_targets(l, 1) < 0)
        return ARES_ENOMEM;
    l->n_targets = 1;
    *l->targets = (struct target){.port = l->query->port};
    memcpy(l->targets->host, l->query->host, len);
    if (read_hosts(l))
        return ARES_SUCCESS;
    return make_questions(l) < 0 ? ARES_ENOMEM : ARES_SUCCESS;
}

/* Asks the first questions; from then on the lookup may have ended after each call. */
static void begin_lookup(struct lookup *l)
{
    int status = open_channel(l);
    if (status == ARES_SUCCESS && !l->query->is_srv)
        status = begin_host(l);
    if (status == ARES_SUCCESS && l->query->is_srv) {
        l->srv = (struct question){l, NULL, DNS_SRV};
        send_question(&l->srv);
    }
    if (status != ARES_SUCCESS)
        note_status(l, DNS_SRV, status);
    if (!l->has_ended)
        ask_more(l);
}

void lookup_start(struct lookup *l, struct mk_loop *loop, lookup_fn fn, void *ctx)
{
    l->loop = loop;
    l->fn = fn;
    l->ctx = ctx;
    l->deadline_ms = mk_loop_now_ms(loop) + LOOKUP_MS_MAX;
    mk_timer_init(&l->timer, on_timer);
    mk_task_init(&l->task, on_end);
    begin_lookup(l);
    continue_lookup(l);
}

/* ── blocking ── */

/* Stores the sockets of a lookup, and how long it can wait. Returns how many there are. */
static unsigned add_sockets(struct lookup *l, struct pollfd *ret, uint32_t *wait_ms)
{
    ares_socket_t fds[LOOKUP_SOCKETS_MAX];
    unsigned n = 0;
    int mask = ares_getsock(l->channel, fds, LOOKUP_SOCKETS_MAX);
    for (unsigned i = 0; i < LOOKUP_SOCKETS_MAX; i++) {
        short events =
            (short)((ARES_GETSOCK_READABLE(mask, i) ? POLLIN : 0) | (ARES_GETSOCK_WRITABLE(mask, i) ? POLLOUT : 0));
        if (events)
            ret[n++] = (struct pollfd){.fd = fds[i], .events = events};
    }
    *wait_ms = get_wait(l, *wait_ms);
    return n;
}

static void process_sockets(struct lookup *l, const struct pollfd *fds)
{
    for (unsigned i = 0; i < l->n_polled && !l->has_ended; i++)
        if (fds[i].revents)
            ares_process_fd(l->channel, fds[i].revents & ~POLLOUT ? fds[i].fd : ARES_SOCKET_BAD,
                            fds[i].revents & POLLOUT ? fds[i].fd : ARES_SOCKET_BAD);
    if (!l->has_ended)
        ares_process_fd(l->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
}

/* Waits once. Returns whether a lookup has not ended. */
static bool wait_once(struct lookup *const *lookups, unsigned n, struct pollfd *fds, uint32_t wait_ms)
{
    unsigned total = 0, at = 0;
    bool is_waiting = false;
    for (unsigned i = 0; i < n; i++) {
        struct lookup *l = lookups[i];
        l->n_polled = l->has_ended ? 0 : add_sockets(l, fds + total, &wait_ms);
        total += l->n_polled;
        is_waiting |= !l->has_ended;
    }
    if (is_waiting)
        mk_poll(fds, total, (int)wait_ms);
    for (unsigned i = 0; i < n; at += lookups[i++]->n_polled)
        process_sockets(lookups[i], fds + at);
    return is_waiting;
}

void lookups_wait(struct lookup *const *lookups, unsigned n, uint32_t ms)
{
    uint64_t now = mk_time_monotonic_ms(), end = now + ms;
    struct pollfd *fds = mk_account_alloc(NULL, n * LOOKUP_SOCKETS_MAX * sizeof(*fds));
    for (unsigned i = 0; i < n; i++)
        begin_lookup(lookups[i]);
    for (; fds && now < end && wait_once(lookups, n, fds, (uint32_t)(end - now)); now = mk_time_monotonic_ms())
        ;
    for (unsigned i = 0; i < n; i++)
        expire_lookup(lookups[i]);
    mk_account_free(NULL, fds, 0);
}

/* ── life ── */

int lookups_init(void)
{
    return ares_library_init(ARES_LIB_INIT_ALL) == ARES_SUCCESS ? 0 : -ENOMEM;
}

void lookups_release(void)
{
    ares_library_cleanup();
}

struct lookup *lookup_new(const struct lookup_query *query)
{
    struct lookup *l = mk_account_alloc(NULL, sizeof(*l));
    if (!l)
        return NULL;
    *l = (struct lookup){.query = query, .result.ttl_s = UINT32_MAX};
    for (unsigned i = 0; i < LOOKUP_SOCKETS_MAX; i++)
        l->sockets[i].event.fd = -1;
    return l;
}

struct lookup_result *lookup_get_result(struct lookup *l)
{
    return &l->result;
}

void lookup_free(struct lookup *l)
{
    l->has_ended = true;
    if (l->channel)
        ares_destroy(l->channel);
    if (l->loop) {
        mk_timer_cancel(&l->timer);
        mk_task_cancel(&l->task);
    }
    mk_account_free(NULL, l->targets, 0);
    mk_account_free(NULL, l->questions, 0);
    mk_account_free(NULL, l, sizeof(*l));
}
