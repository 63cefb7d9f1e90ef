// SPDX-License-Identifier: Apache-2.0
#include "lookup_state.h"

#include <monkey/base/arena.h>

#include <errno.h>
#include <netdb.h>
#include <string.h>

enum {
    TRY_MS = 700,     /* for the first answer of a name server; twice as long in the next round */
    TRIES = 3,        /* of each name server */
    PENDING_MAX = 32, /* questions at the same time: name servers drop what comes in large bursts */
    FAMILIES = 2,
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

/* ── the library ── */

int lookups_init(void)
{
    return ares_library_init(ARES_LIB_INIT_ALL) == ARES_SUCCESS ? 0 : -ENOMEM;
}

void lookups_release(void)
{
    ares_library_cleanup();
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
                                   .sock_state_cb = lookup_on_socket,
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

void lookup_begin(struct lookup *l)
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

void lookup_expire(struct lookup *l)
{
    l->asked = l->n_questions;
    if (!l->has_ended)
        note_status(l, DNS_SRV, ARES_ECANCELLED);
    if (l->channel)
        ares_cancel(l->channel);
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
