// SPDX-License-Identifier: Apache-2.0
/*
 * The table of names and the threads that fill it (net/names.h). Everything belongs to the loop's thread, but for a
 * running name's result, which is the lookup's until its message arrives, and for what the lock guards.
 */
#include "net/names.h"

#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>

enum { STACK_BYTES = 256 * 1024 };

struct mk__names {
    mk__names_fn look_up;
    unsigned n, running;
    struct mk_list table;
    pthread_mutex_t lock; /* of the two below */
    struct mk_loop *loop; /* NULL: closed */
    unsigned refs;        /* the loop's, and one for each lookup whose answer has not come */
};

/* ── the system's resolver ── */

static int errno_of(int code)
{
    switch (code) {
    case EAI_NONAME:
    case EAI_NODATA:
    case EAI_ADDRFAMILY:
        return -ENXIO;
    case EAI_AGAIN:
        return -EAGAIN;
    case EAI_MEMORY:
        return -ENOMEM;
    case EAI_SYSTEM:
        return errno ? -errno : -EIO;
    default:
        return -EIO;
    }
}

int mk__names_system(const char *host, struct mk__addr *ret, unsigned max)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list;
    unsigned n = 0;
    int code = getaddrinfo(host, NULL, &hints, &list);
    if (code)
        return errno_of(code);
    for (const struct addrinfo *one = list; one && n < max; one = one->ai_next) {
        if (one->ai_family != AF_INET && one->ai_family != AF_INET6)
            continue;
        ret[n] = (struct mk__addr){.len = one->ai_addrlen};
        memcpy(&ret[n++].in6, one->ai_addr, one->ai_addrlen);
    }
    freeaddrinfo(list);
    return n ? (int)n : -ENXIO;
}

/* ── the thread of a lookup ── */

/* Families take turns, each in the resolver's order (RFC 8305 section 4). */
static void take_turns(struct mk__addr *a, unsigned n)
{
    for (unsigned i = 1; i < n; i++) {
        unsigned from = i;
        while (from < n && a[from].sa.sa_family == a[i - 1].sa.sa_family)
            from++;
        if (from == n)
            return;
        struct mk__addr moved = a[from];
        memmove(&a[i + 1], &a[i], (from - i) * sizeof(*a));
        a[i] = moved;
    }
}

static void release(struct mk__names *names)
{
    pthread_mutex_lock(&names->lock);
    bool last = --names->refs == 0;
    pthread_mutex_unlock(&names->lock);
    if (!last)
        return;
    pthread_mutex_destroy(&names->lock);
    mk_account_free(NULL, names, 0);
}

static void *run(void *ctx)
{
    struct mk__name *name = ctx;
    struct mk__names *names = name->names;
    prctl(PR_SET_NAME, "monkey: names");
    int n = names->look_up(name->text, name->addrs, MK_DIAL_ADDRESSES_MAX);
    name->err = n > 0 ? 0 : n ? n : -ENXIO;
    name->n = n > 0 ? (unsigned)n : 0;
    take_turns(name->addrs, name->n);
    pthread_mutex_lock(&names->lock);
    bool open = names->loop;
    if (open)
        mk_post(names->loop, &name->message); /* under the lock: the loop cannot end meanwhile */
    pthread_mutex_unlock(&names->lock);
    if (open)
        return NULL;
    mk_account_free(NULL, name, 0);
    release(names);
    return NULL;
}

static int start_thread(struct mk__name *name)
{
    pthread_t id;
    pthread_attr_t attr;
    sigset_t all, before;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are the program's business */
    int err = pthread_create(&id, &attr, run, name);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return -err;
}

/* ── the table ── */

static void forget(struct mk__name *name)
{
    mk_list_del(&name->node);
    name->names->n--;
    if (!name->users)
        mk_account_free(NULL, name, 0);
}

static void settle(struct mk_loop *loop, struct mk__name *name, uint32_t believed_ms)
{
    name->state = MK__NAME_KNOWN;
    name->expires_ms = mk_loop_now_ms(loop) + believed_ms;
    while (!mk_list_empty(&name->waiting)) {
        struct mk_task *task = MK_LIST_FIRST(&name->waiting, struct mk_task, node);
        mk_list_del(&task->node);
        mk_task_schedule(loop, task);
    }
}

static void start_lookup(struct mk__names *names, struct mk__name *name)
{
    pthread_mutex_lock(&names->lock);
    names->refs++;
    pthread_mutex_unlock(&names->lock);
    names->running++;
    name->state = MK__NAME_RUNNING;
    int err = start_thread(name);
    if (err == 0)
        return; /* from here on the result is the thread's */
    name->err = err;
    names->running--;
    release(names);
    settle(names->loop, name, 0);
}

static void start_next(struct mk__names *names)
{
    struct mk_list *n, *save;
    MK_LIST_EACH(&names->table, n, save) {
        struct mk__name *name = MK_OWNER(n, struct mk__name, node);
        if (names->running == MK__NAMES_RUNNING_MAX)
            return;
        if (name->state == MK__NAME_QUEUED)
            start_lookup(names, name);
    }
}

static void on_answer(struct mk_message *message)
{
    struct mk__name *name = MK_OWNER(message, struct mk__name, message);
    struct mk__names *names = name->names;
    if (names->loop) {
        names->running--;
        settle(names->loop, name, name->err ? MK__NAMES_BAD_MS : MK__NAMES_GOOD_MS);
        start_next(names);
    } else { /* it was on its way when the table was closed */
        mk_account_free(NULL, name, 0);
    }
    release(names);
}

static struct mk__name *find(struct mk__names *names, struct mk_str host)
{
    struct mk_list *n, *save;
    MK_LIST_EACH(&names->table, n, save)
        if (mk_str_ieq(MK_OWNER(n, struct mk__name, node)->host, host))
            return MK_OWNER(n, struct mk__name, node);
    return NULL;
}

/* The one that was not asked for the longest time goes, unless it is about to be known. */
static int make_room(struct mk__names *names)
{
    struct mk_list *n, *save;
    if (names->n < MK__NAMES_MAX)
        return 0;
    MK_LIST_EACH(&names->table, n, save) {
        struct mk__name *name = MK_OWNER(n, struct mk__name, node);
        if (name->state == MK__NAME_KNOWN) {
            forget(name);
            return 0;
        }
    }
    return -EBUSY;
}

static int add(struct mk__names *names, struct mk_str host, struct mk__name **ret_name)
{
    int err = make_room(names);
    if (err < 0)
        return err;
    struct mk__name *name = mk_account_alloc(NULL, sizeof(*name) + host.len + 1);
    if (!name)
        return -ENOMEM;
    *name = (struct mk__name){.message.fn = on_answer, .names = names, .host = {name->text, host.len}};
    memcpy(name->text, host.p, host.len);
    name->text[host.len] = '\0';
    mk_list_init(&name->waiting);
    mk_list_add(&names->table, &name->node);
    names->n++;
    *ret_name = name;
    return 0;
}

int mk__names_get(struct mk_loop *loop, struct mk_str host, struct mk_task *task, struct mk__name **ret_name)
{
    int err = loop->names ? 0 : mk__names_open(loop, mk__names_system);
    if (err < 0)
        return err;
    struct mk__names *names = loop->names;
    struct mk__name *name = find(names, host);
    if (name && name->state == MK__NAME_KNOWN && name->expires_ms <= mk_loop_now_ms(loop)) {
        forget(name);
        name = NULL;
    }
    if (!name) {
        err = add(names, host, &name);
        if (err < 0)
            return err;
        start_next(names);
    } else if (name->state == MK__NAME_KNOWN) {
        mk_list_del(&name->node); /* the queue of those that are not known keeps its order */
        mk_list_add(&names->table, &name->node);
    }
    name->users++;
    *ret_name = name;
    if (name->state == MK__NAME_KNOWN)
        return 0;
    mk_list_add(&name->waiting, &task->node);
    return MK_AGAIN;
}

void mk__names_put(struct mk__name *name)
{
    if (--name->users)
        return;
    if (name->state == MK__NAME_QUEUED)
        forget(name); /* nobody wants to know any more */
    else if (mk_list_empty(&name->node))
        mk_account_free(NULL, name, 0); /* the table has let it go before */
}

/* ── opening and closing ── */

int mk__names_open(struct mk_loop *loop, mk__names_fn look_up)
{
    struct mk__names *names = mk_account_alloc(NULL, sizeof(*names));
    if (!names)
        return -ENOMEM;
    *names = (struct mk__names){.look_up = look_up, .loop = loop, .refs = 1};
    mk_list_init(&names->table);
    pthread_mutex_init(&names->lock, NULL);
    loop->names = names;
    return 0;
}

void mk__names_close(struct mk_loop *loop)
{
    struct mk__names *names = loop->names;
    struct mk_list *n, *save;
    if (!names)
        return;
    loop->names = NULL;
    MK_LIST_EACH(&names->table, n, save) {
        struct mk__name *name = MK_OWNER(n, struct mk__name, node);
        if (name->state != MK__NAME_RUNNING)
            forget(name);
    }
    pthread_mutex_lock(&names->lock);
    names->loop = NULL;
    pthread_mutex_unlock(&names->lock);
    release(names);
}
