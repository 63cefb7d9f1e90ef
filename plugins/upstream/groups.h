// SPDX-License-Identifier: Apache-2.0
#ifndef UPSTREAM_GROUPS_H
#define UPSTREAM_GROUPS_H

#include "conf.h"
#include "servers.h"

#include <monkey/base/epoch.h>
#include <monkey/kit/command.h>

/*
 * Names in lines `Server`, and their addresses: looked up once for the process, again when their time to live is over,
 * and known over reloads that leave the line.
 *
 *     generation_start   names_watch() for each name ─► names_resolve(), which blocks, for those that are new
 *     in a loop          names_start() ─► lookups ─► changed() ─► ... ─► names_stop()
 *
 * What was known stays while there is no answer, and when the answer is that there is no address: one that is wrong
 * does less harm than none.
 */
/* What is looked up for a line, and how. Strings and addresses are copied. */
struct name_conf {
    struct mk_str group, line; /* for messages; the same name in another line is looked up for that one */
    struct mk_str host;
    bool is_srv;
    uint16_t port;
    int family;                    /* enum lookup_family */
    struct lookup_servers servers; /* none: those of the system */
    uint32_t ttl_ms_max;
};

struct name;

/* The names of a generation. */
struct names {
    struct mk_list watches;
    struct mk_loop *loop; /* NULL: not started */
    struct mk_timer timer;
    unsigned running; /* lookups, in the loop */
};

/* A line of a generation that has a name; in the caller's storage. */
struct name_watch {
    struct mk_list node;      /* in struct names */
    struct mk_list name_node; /* in the name */
    struct names *names;
    struct name *name; /* NULL: nothing is watched */
    /*
     * There are other addresses. Under the lock of all names, in any thread. Returns 0, or -errno: it is called again
     * after the next lookup.
     */
    int (*changed)(struct name_watch *watch);
    void *ctx; /* of the caller */
};

/* The lock of all names, for names_watch(), names_unwatch() and names_get(). */
void names_lock(void);
void names_unlock(void);

void names_init(struct names *names);
/* Begins and ends to watch a name, with `changed`. The first returns 0 or -ENOMEM. */
int names_watch(struct names *names, struct name_watch *watch, const struct name_conf *conf);
void names_unwatch(struct name_watch *watch);
/* Returns the addresses, as struct lookup_result has them; none: they are not known. Valid while the lock is held. */
const struct lookup_address *names_get(const struct name_watch *watch, unsigned *ret_n);

/* Looks up the names that never were, for `ms` at most. Without the lock; blocks. */
void names_resolve(struct names *names, uint32_t ms);
/* Says why the last lookup has found no addresses; NULL: it has found some, or nothing is watched. Under the lock. */
const char *names_get_failure(const struct name_watch *watch);

/* Looks up the names from now on, and ends that. In the loop's thread, the second also after its end. */
void names_start(struct names *names, struct mk_loop *loop);
void names_stop(struct names *names);

/*
 * The servers of a group as its configuration and the addresses of its names have them. A list does not change, but for
 * the turns of RoundRobin: other addresses make another list, and the former one is freed when no loop can see it.
 */
enum { GROUP_MEMBERS_MAX = 1024 }; /* further addresses are not used */

/* A server as the configuration of its group has it. */
struct member {
    struct server *server; /* held */
    const struct server_line *line;
    struct turn turn;
    uint64_t hash;     /* of the server's address */
    uint32_t weight;   /* of the SRV record, by the largest one of its priority; 0: that of the line counts */
    uint16_t priority; /* of the SRV record; a larger one is used if no server of the line with a smaller one can be */
    char token[STICKY_TOKEN_BYTES]; /* with Balance Sticky */
};

struct members {
    struct mk_retired retired;
    unsigned n;
    struct member items[]; /* by their lines, and in a line by their priorities */
};

/*
 * A group of a generation, with its servers.
 */
static inline enum admin_state server_line_state(const struct server_line *line)
{
    return line->is_down ? ADMIN_DOWN : line->is_draining ? ADMIN_DRAIN : ADMIN_UP;
}

/* Return what the line says, and what is in force, since the shell may have set something else. Any thread. */
static inline enum admin_state member_line_state(const struct member *m)
{
    return server_line_state(m->line);
}
static inline enum admin_state member_state(const struct member *m)
{
    uint32_t set = atomic_load_explicit(&m->server->admin->state, memory_order_relaxed);
    return set != ADMIN_UNSET ? (enum admin_state)set : member_line_state(m);
}
static inline uint32_t member_weight(const struct member *m)
{
    uint32_t set = atomic_load_explicit(&m->server->admin->weight_plus, memory_order_relaxed);
    return set ? set - 1 : m->weight ? m->weight : m->line->weight;
}

/* Returns whether the member may get a request; `is_sticky`: the request names it by its cookie. */
static inline bool member_takes(const struct member *m, bool is_sticky)
{
    enum admin_state state = member_state(m);
    if (server_is_down(m->server))
        return false;
    return is_sticky ? state != ADMIN_DOWN : state == ADMIN_UP && member_weight(m);
}

struct mk_upstream_group {
    struct mk_upstream_group *next;
    const struct upstream_conf *conf;
    struct pool *pool;      /* held */
    struct lock turns_lock; /* of RoundRobin */
    _Atomic uint64_t seed;
    _Atomic bool tries_ejected; /* more servers are ejected than EjectMost allows */
    /* replaced under the locks of names and of the pool */
    _Atomic(struct members *) members;
    _Atomic uint32_t version; /* of `members` */
    uint64_t sticky_key[2];
    bool has_tokens;             /* made of that key; under the lock of names */
    struct admin **admins;       /* of the lines, held; after `watches` */
    struct name_watch watches[]; /* of the lines; those without a name are zeroed */
};

/*
 * Returns the servers of a group, valid until the turn of a loop ends that has joined the epochs, or as long as the
 * lock of the pool is held.
 */
static inline struct members *group_members(const struct mk_upstream_group *group)
{
    return atomic_load_explicit(&group->members, memory_order_acquire);
}

/* What a request wants, except a server that it has not had. */
struct preference {
    const uint64_t *key;         /* for Hash; NULL: it has none */
    const struct server *sticky; /* which its cookie names; NULL: none */
    const struct server *login;  /* which knows its login: before that one, if it has room; NULL: none */
};

/*
 * Which servers of a group may get a request, and which one of them does.
 */
struct criteria {
    const struct mk_upstream_tries *tries; /* servers that it has had */
    const struct preference *preference;
    const struct server *only; /* NULL: any */
    bool is_probe;             /* also those that are ejected: none responds */
    uint64_t now_ms;
};

/*
 * Returns the member that gets the request. NULL: none does; `*ret_is_full`: only because those that could have as many
 * requests as they may have.
 */
struct member *choice_make(struct mk_upstream_group *group, const struct criteria *criteria, bool *ret_is_full);
/* Says why a group has no server for a request, for the log; as mk_upstreams.explain. */
void explain_failure(const struct mk_upstream_group *group, int err, struct mk_buf *out);

/*
 * The groups of a generation, and which server of one a request gets.
 */
/* Makes the group of a section, whose names are added to `names`. Returns NULL without memory. */
struct mk_upstream_group *group_make(const struct upstream_conf *conf, struct names *names);
void group_free(struct mk_upstream_group *group);
/* The group is in use from now on: requests of former groups of its name that wait get its servers. Any thread. */
void group_make_current(struct mk_upstream_group *group);
/* Makes the values of the cookies. */
void group_make_tokens(struct mk_upstream_group *group, const uint64_t key[2]);

/* Returns the server whose cookie has this value; NULL: there is none. */
struct server *group_find_sticky(const struct mk_upstream_group *group, struct mk_str value);
const struct member *group_find_member(const struct mk_upstream_group *group, const struct mk_upstream_server *server);

/* Returns the first group of a generation, in the order of the configuration; NULL: it has none. In upstream.c. */
const struct mk_upstream_group *groups_first(const struct mk_generation *g);

/* What the plugin adds to `monkey shell`: the commands `upstreams` and `upstream`. Ends with a row without a name. */
extern const struct mk_command upstream_commands[];

/* ── waits.c ── */

/*
 * As mk_upstreams.choose, in the thread of `loop`, where `wait->fn` is called with the request `wait->req`. The load of
 * the server has this request then.
 */
int group_choose(const struct mk_upstream_group *group, struct mk_loop *loop, const struct preference *preference,
                 struct mk_upstream_tries *tries, struct mk_upstream_wait *wait, struct mk_upstream_server **ret);
/* As mk_upstreams.cancel. */
void group_cancel(struct mk_upstream_wait *wait);
/*
 * A server has room for a request, or has responded: the first ones that wait for that get it. Any thread. The first
 * only compares `server`, which may be gone, and returns as mk_upstreams.end. `is_well`: it serves those that are held.
 */
const struct mk_loop *group_note_room(struct pool *pool, const struct server *server, bool is_well, uint64_t now_ms);
void group_note_response(struct server *server, uint64_t now_ms);
/* A server was down by its checks, and is not any more: the same. */
void group_note_up(struct server *server, uint64_t now_ms);

#endif
