// SPDX-License-Identifier: Apache-2.0
/*
 * What is made of the sections: rules with their files, and the state of the plugin for each lifetime.
 *
 *     process     auth_process: threads for hashes, cache, failures; kept by a reload
 *     generation  auth_generation: limits, and each file once ──► mk_watched
 *     host        auth_host: the rules, in the order of the sections
 *     worker      auth_worker: a reference to the value of each file, and the hashes that are computed
 */
#ifndef AUTH_RULES_H
#define AUTH_RULES_H

#include <monkey/http_client.h>
#include <monkey/thread_pool.h>
#include <monkey/watched.h>

#include "cache.h"
#include "failures.h"
#include "forward.h"
#include "login_counters.h"
#include "settings.h"
#include "token_cache.h"
#include "users.h"

struct auth_process {
    struct mk_thread_pool pool; /* computes hashes, so that neither workers nor disk threads wait for them */
    _Atomic uint64_t hashes;    /* that it has computed */
    struct cache *cache;
    struct mk_client_table *failures;
    struct failures_evictions evictions; /* of that table */
    struct mk_stats_registry registry;   /* of the servers of Type Forward */
};

enum auth_file_kind { AUTH_FILE_USERS, AUTH_FILE_GROUPS, AUTH_FILE_KEYS };

/* A file of users or groups, which several rules may name, or the files of keys of one rule. */
struct auth_file {
    struct auth_file *next;
    enum auth_file_kind kind;
    struct mk_str path;           /* of users or groups */
    const struct keys_file *keys; /* of AUTH_FILE_KEYS, and their number */
    unsigned n_keys;
    struct mk_watched *watched;
    unsigned index; /* in auth_worker */
};

struct auth_generation {
    struct auth_process *process;
    const struct auth_limits *limits;
    struct auth_file *files;
    unsigned n_files;
    bool keeps_answers; /* a section has ForwardCache */
};

struct auth_rule {
    const struct auth_conf *conf;
    const struct auth_file *users, *groups, *keys; /* NULL: the section has none */
    struct mk_str challenge;                       /* the value of WWW-Authenticate */
    struct claims_rules *claims;                   /* of tokens; NULL for other types */
    struct forward *forward;                       /* of Type Forward; NULL for other types */
};

struct auth_host {
    struct mk_arena arena; /* of the rules */
    unsigned n;
    struct auth_rule *rules;
};

struct auth_worker {
    struct mk_list jobs;        /* of login_job.c: those that requests wait for */
    struct text_cache *tokens;  /* NULL: no rule has tokens, or there is no memory */
    struct text_cache *answers; /* NULL: no rule keeps answers, or there is no memory */
    int64_t n_questions;        /* of forward_login.c: those under way */
    struct mk_http_idle idle;   /* connections to the servers that they ask */
    unsigned n;
    struct mk_watched_ref refs[];
};

/* Makes the rules of a host, and opens their files. Returns 0 (`*ret` is NULL without any section) or -errno, reported.
 */
int rules_make(struct mk_host *host, struct auth_generation *g, struct auth_host **ret);
/* Frees the rules; the files belong to the generation. */
void rules_free(struct auth_host *h);
/* Closes the files of a generation, to which no worker refers any more. */
void rules_close_files(struct auth_generation *g);

/*
 * Finds the first rule that matches a path; NULL: none does.
 * Returns 0, or -errno: it is not known whether a rule matches.
 */
int rules_find(const struct auth_host *h, struct mk_str path, const struct auth_rule **ret);

/* Returns true if the rule asks for a login or a certificate. */
bool rules_protects(const struct auth_rule *rule);

/* Return the users, groups and keys that are in use now; valid until the callback returns. NULL: the rule has none. */
const struct users *rules_users(struct mk_request *req, const struct auth_rule *rule);
const struct groups *rules_groups(struct mk_request *req, const struct auth_rule *rule);
const struct key_set *rules_keys(struct mk_request *req, const struct auth_rule *rule);

/* Return the state of the process and the limits of a request's generation. */
struct auth_process *rules_process(const struct mk_request *req);
const struct auth_limits *rules_limits(const struct mk_request *req);

/* Counts what has become of a request's login. */
void rules_count_login(const struct mk_request *req, enum login_type type, enum login_result result);

/* Returns the users of a rule as rules_users(), for a worker that is held. */
const struct users *rules_worker_users(struct auth_worker *worker, const struct auth_rule *rule);

/* Returns true if a user that has logged in is one of those that `Require` names. */
bool rules_admits(struct mk_request *req, const struct auth_rule *rule, struct mk_str user);

#endif
