// SPDX-License-Identifier: Apache-2.0
/*
 * Starts, watches and ends the processes of applications.
 */
#include "fastcgi.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

enum {
    DELAY_MIN_MS = 100,
    DELAY_MAX_MS = 30000,
    STEADY_MS = 5000, /* a child that has run for so long is started again at once */
    GRACE_MS = 3000,
};

struct pool;

struct spawn_child {
    struct mk_list node;
    struct pool *pool;
    struct mk_child child;
    struct mk_timer timer; /* until it is started again */
    uint32_t delay_ms;
    uint64_t started_ms;
    bool is_running, is_ending;
};

/* The children of a line. */
struct pool {
    struct mk_list node;
    struct spawns *all;
    char *text, *folder, *program; /* copies: the pool outlives generations */
    struct mk_str args;
    int fd; /* that listens */
    unsigned refs, wanted, n;
    struct mk_message unused; /* nothing holds it any more */
    bool is_posted;
    struct mk_list children;
};

struct spawns {
    struct mk_child_starter *starter;
    struct mk_child_channel *channel; /* NULL: there is no worker */
    struct mk_loop *loop;             /* of the first worker */
    struct mk_worker *worker;         /* the newest */
    pthread_mutex_t lock;
    struct holder *holders; /* under the lock, as `loop` while there are none */
    struct mk_list pools;
};

/* A worker that serves. */
struct holder {
    struct holder *next;
    const struct mk_worker *worker;
};

/* ── children ── */

static void start_child(struct spawn_child *c);

static void free_child(struct spawn_child *c)
{
    mk_timer_cancel(&c->timer);
    mk_child_close(&c->child);
    mk_list_del(&c->node);
    c->pool->n--;
    mk_account_free(NULL, c, sizeof(*c));
}

/* Frees a pool that nothing holds, once its children have ended. */
static void free_unused_pool(struct pool *p);

/* Returns the number of children that are not to end. */
static unsigned count_kept(struct pool *p)
{
    unsigned kept = 0;
    MK_LIST_EACH_ITEM(&p->children, struct spawn_child, node, child)
        kept += !child->is_ending;
    return kept;
}

/* Starts it again, after a delay that grows while children end early; or not, if fewer are wanted. */
static void replace_child(struct spawn_child *c)
{
    struct pool *p = c->pool;
    uint64_t now = mk_loop_now_ms(p->all->loop);
    mk_child_close(&c->child);
    c->is_running = false;
    if (c->is_ending || count_kept(p) > p->wanted) {
        free_child(c);
        free_unused_pool(p);
        return;
    }
    bool was_steady = c->started_ms && now - c->started_ms >= STEADY_MS;
    c->delay_ms = was_steady ? 0 : c->delay_ms ? c->delay_ms * 2 : DELAY_MIN_MS;
    if (c->delay_ms > DELAY_MAX_MS)
        c->delay_ms = DELAY_MAX_MS;
    mk_timer_arm(p->all->loop, &c->timer, c->delay_ms);
}

static void on_started(struct mk_child *child, int err, enum mk_child_step step)
{
    struct spawn_child *c = MK_CONTAINER_OF(child, struct spawn_child, child);
    if (err == 0) {
        c->started_ms = mk_loop_now_ms(c->pool->all->loop);
        return;
    }
    mk_log_error("fastcgi: Spawn %s: it %s: %s", c->pool->text, mk_child_step_text(step), strerror(-err));
    c->started_ms = 0;
    replace_child(c);
}

static void on_ended(struct mk_child *child, int status)
{
    struct spawn_child *c = MK_CONTAINER_OF(child, struct spawn_child, child);
    MK_BUF_ON_STACK(text, 128);
    mk_child_print_status(status, &text);
    if (!c->is_ending)
        mk_log_limited(MK_LOG_WARN, c->pool, "fastcgi: Spawn %s: process %d %s; another one is started", c->pool->text,
                       mk_child_pid(child), mk_buf_cstr(&text)); /* a request may have ended it */
    replace_child(c);
}

static void on_timer(struct mk_timer *timer)
{
    start_child(MK_CONTAINER_OF(timer, struct spawn_child, timer));
}

/* Starts the program. Returns 0 or -errno: no event follows. */
static int start_program(struct spawn_child *c)
{
    static const struct mk_child_events events = {.started = on_started, .ended = on_ended};
    const struct pool *p = c->pool;
    const struct spawns *all = p->all;
    int input = fcntl(p->fd, F_DUPFD_CLOEXEC, 3);
    if (input < 0)
        return -errno;
    int errors = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3); /* which may be closed */
    if (errors < 0 && errno != EBADF) {
        int err = -errno;
        close(input);
        return err;
    }
    const struct mk_child_options options = {
        .path = p->program,
        .args = p->args,
        .env = MK_STR("PATH=/usr/local/bin:/usr/bin:/bin\0"),
        .fds = {input, -1, errors},
    };
    return mk_child_start(&c->child, all->channel, all->worker, &events, &options);
}

static void start_child(struct spawn_child *c)
{
    int err = start_program(c);
    c->is_running = err == 0;
    if (err == 0)
        return;
    bool is_short = err == -EMFILE || err == -ENFILE;
    mk_log_error("fastcgi: Spawn %s: it cannot be started: %s", c->pool->text,
                 is_short ? "there is no descriptor left for its socket" : strerror(-err));
    replace_child(c);
}

static void stop_child(struct spawn_child *c)
{
    c->is_ending = true;
    if (c->is_running)
        mk_child_stop(&c->child, GRACE_MS);
    else
        free_child(c);
}

static int add_child(struct pool *p)
{
    struct spawn_child *c = mk_account_alloc(NULL, sizeof(*c));
    if (!c)
        return -ENOMEM;
    *c = (struct spawn_child){.pool = p};
    mk_timer_init(&c->timer, on_timer);
    mk_list_add(&p->children, &c->node);
    p->n++;
    start_child(c);
    return 0;
}

/* ── pools ── */

static char *copy_text(struct mk_str text)
{
    char *copy = mk_account_alloc(NULL, text.len + 1);
    if (!copy)
        return NULL;
    memcpy(copy, text.p, text.len);
    copy[text.len] = '\0';
    return copy;
}

static void free_text(char *text)
{
    if (text)
        mk_account_free(NULL, text, strlen(text) + 1);
}

static void free_pool(struct pool *p)
{
    while (!mk_list_empty(&p->children))
        free_child(MK_LIST_FIRST(&p->children, struct spawn_child, node));
    mk_list_del(&p->node);
    if (p->is_posted)
        mk_message_cancel(p->all->loop, &p->unused);
    if (p->fd >= 0)
        spawn_socket_close(p->folder, p->fd);
    free_text(p->text);
    free_text(p->folder);
    free_text(p->program);
    if (p->args.p)
        mk_account_free(NULL, (char *)(uintptr_t)p->args.p, p->args.len + 1);
    mk_account_free(NULL, p, sizeof(*p));
}

static void free_unused_pool(struct pool *p)
{
    if (!p->refs && !p->n)
        free_pool(p);
}

static void on_unused(struct mk_message *message);

static struct pool *make_pool(struct spawns *all, const struct spawn_conf *conf)
{
    struct pool *p = mk_account_alloc(NULL, sizeof(*p));
    if (!p)
        return NULL;
    *p = (struct pool){.all = all,
                       .text = copy_text(conf->text),
                       .folder = copy_text(mk_str_c(conf->folder)),
                       .unused = {.fn = on_unused},
                       .program = copy_text(mk_str_c(conf->program)),
                       .args = {copy_text(conf->args), conf->args.len},
                       .fd = -1};
    mk_list_init(&p->children);
    mk_list_add(&all->pools, &p->node);
    bool is_whole = p->text && p->folder && p->program && p->args.p;
    p->fd = is_whole ? spawn_socket_open(p->folder) : -ENOMEM;
    if (p->fd >= 0)
        return p;
    mk_log_error("fastcgi: Spawn %.*s: cannot listen at %.*s: %s", MK_STR_ARG(conf->text),
                 MK_STR_ARG(conf->target.dial->host), strerror(-p->fd));
    free_pool(p);
    return NULL;
}

static struct pool *find_pool(struct spawns *all, const struct spawn_conf *conf)
{
    MK_LIST_EACH_ITEM(&all->pools, struct pool, node, p) {
        if (mk_str_eq(p->args, conf->args))
            return p;
    }
    return NULL;
}

/* Starts or ends children until there are as many as are wanted. */
static void fit_pool(struct pool *p, unsigned wanted)
{
    unsigned kept = 0;
    p->wanted = wanted;
    MK_LIST_EACH_ITEM(&p->children, struct spawn_child, node, c) {
        if (c->is_ending)
            continue;
        if (kept < wanted)
            kept++;
        else
            stop_child(c);
    }
    for (; kept < wanted && add_child(p) == 0; kept++)
        ;
    if (kept < wanted)
        mk_log_error("fastcgi: Spawn %s: there is no memory for all children", p->text);
}

/* ── holds ── */

static struct holder **find_holder(struct holder **at, const struct mk_worker *worker)
{
    while (*at && (*at)->worker != worker)
        at = &(*at)->next;
    return at;
}

/* Adds a worker. Returns false if there are those of another loop. */
static bool add_holder(struct spawns *all, struct holder *holder, struct mk_loop *loop)
{
    pthread_mutex_lock(&all->lock);
    bool is_ours = !all->holders || all->loop == loop;
    if (is_ours) {
        holder->next = all->holders;
        all->holders = holder;
        all->loop = loop;
    }
    pthread_mutex_unlock(&all->lock);
    return is_ours;
}

/* Returns whether it was the last one. */
static bool remove_holder(struct spawns *all, const struct mk_worker *worker)
{
    pthread_mutex_lock(&all->lock);
    struct holder **at = find_holder(&all->holders, worker), *holder = *at;
    *at = holder->next;
    bool is_last = !all->holders;
    pthread_mutex_unlock(&all->lock);
    mk_account_free(NULL, holder, sizeof(*holder));
    return is_last;
}

bool spawns_begin(struct spawns *all, struct mk_worker *worker)
{
    struct mk_loop *loop = mk_worker_loop(worker);
    struct holder *holder = mk_account_alloc(NULL, sizeof(*holder));
    if (!holder) {
        mk_log_error("fastcgi: there is no memory for the processes of Spawn");
        return false;
    }
    *holder = (struct holder){.worker = worker};
    if (!add_holder(all, holder, loop)) {
        mk_log_error("fastcgi: Spawn is for one server of a process");
        mk_account_free(NULL, holder, sizeof(*holder));
        return false;
    }
    all->worker = worker;
    if (!all->channel && mk_child_channel_open(all->starter, loop, NULL, &all->channel) < 0)
        mk_log_error("fastcgi: there is no memory for the processes of Spawn");
    return true;
}

bool spawns_has(struct spawns *all, const struct mk_worker *worker)
{
    pthread_mutex_lock(&all->lock);
    bool found = *find_holder(&all->holders, worker) != NULL;
    pthread_mutex_unlock(&all->lock);
    return found;
}

void spawns_hold(struct spawns *all, const struct spawn_conf *conf, unsigned n_children)
{
    struct pool *p = find_pool(all, conf);
    if (!p && all->channel)
        p = make_pool(all, conf);
    if (!p)
        return;
    p->refs++;
    fit_pool(p, n_children);
}

/* Ends the children of a pool, unless it is held again. */
static void on_unused(struct mk_message *message)
{
    struct pool *p = MK_CONTAINER_OF(message, struct pool, unused);
    p->is_posted = false;
    if (p->refs)
        return;
    fit_pool(p, 0);
    free_unused_pool(p);
}

/* In a worker_stop, which may begin nothing: a message ends the pool. The last worker ends all of them. */
void spawns_put(struct spawns *all, const struct spawn_conf *conf)
{
    struct pool *p = find_pool(all, conf);
    if (!p || !p->refs || --p->refs || p->is_posted)
        return;
    p->is_posted = true;
    mk_post(all->loop, &p->unused);
}

void spawns_end(struct spawns *all, const struct mk_worker *worker)
{
    if (!remove_holder(all, worker))
        return;
    mk_child_channel_close(all->channel);
    all->channel = NULL;
    while (!mk_list_empty(&all->pools))
        free_pool(MK_LIST_FIRST(&all->pools, struct pool, node));
}

struct spawns *spawns_new(void)
{
    struct spawns *all = mk_account_zalloc(NULL, sizeof(*all));
    if (!all)
        return NULL;
    mk_list_init(&all->pools);
    pthread_mutex_init(&all->lock, NULL);
    if (mk_child_starter_new(&all->starter) == 0)
        return all;
    mk_account_free(NULL, all, sizeof(*all));
    return NULL;
}

void spawns_free(struct spawns *all)
{
    mk_child_starter_free(all->starter);
    pthread_mutex_destroy(&all->lock);
    mk_account_free(NULL, all, sizeof(*all));
}
