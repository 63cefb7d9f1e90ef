// SPDX-License-Identifier: Apache-2.0
#include "rules.h"

#include <monkey/base/escape.h>

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

enum { ARENA_BYTES_MAX = 16 * 1024 * 1024, MESSAGE_BYTES = 1024 };

/* ── files ── */

static int load_users(void *ctx, void **ret_value, struct mk_buf *message)
{
    const struct auth_file *file = ctx;
    struct users *users;
    int err = users_load(file->path.p, &users, message);
    if (err < 0)
        return err;
    users_add_warnings(users, message);
    *ret_value = users;
    return 0;
}

static void free_users(void *value)
{
    users_free(value);
}

static int load_groups(void *ctx, void **ret_value, struct mk_buf *message)
{
    const struct auth_file *file = ctx;
    struct groups *groups;
    int err = groups_load(file->path.p, &groups, message);
    if (err == 0)
        *ret_value = groups;
    return err;
}

static void free_groups(void *value)
{
    groups_free(value);
}

static int load_keys(void *ctx, void **ret_value, struct mk_buf *message)
{
    const struct auth_file *file = ctx;
    struct key_set *keys;
    int err = keys_load(file->keys, file->n_keys, &keys, message);
    if (err == 0)
        *ret_value = keys;
    return err;
}

static void free_keys(void *value)
{
    key_set_free(value);
}

static const struct {
    const char *name;
    struct mk_watched_type type;
} file_kinds[] = {
    [AUTH_FILE_USERS] = {"users", {.load = load_users, .free = free_users}},
    [AUTH_FILE_GROUPS] = {"groups", {.load = load_groups, .free = free_groups}},
    [AUTH_FILE_KEYS] = {"keys", {.load = load_keys, .free = free_keys}},
};

static struct auth_file *find_file(struct auth_generation *g, struct mk_str path, enum auth_file_kind kind)
{
    struct auth_file *file = g->files;
    while (file && !(file->kind == kind && mk_str_eq(file->path, path)))
        file = file->next;
    return file;
}

/* Loads files for the first time, and has them watched. Returns 0 or -errno with a message. */
static int watch_file(struct auth_file *file, struct mk_buf *message)
{
    char name[128];
    struct mk_str paths[MK_WATCHED_FILES_MAX] = {file->path};
    struct mk_watched_source source = {.type = &file_kinds[file->kind].type, .ctx = file, .paths = paths, .n = 1};
    for (unsigned i = 0; i < file->n_keys; i++)
        paths[i] = file->keys[i].path;
    if (file->n_keys)
        source.n = file->n_keys;
    snprintf(name, sizeof(name), "auth: the %s of %.*s", file_kinds[file->kind].name,
             paths[0].len > 90 ? 90 : (int)paths[0].len, paths[0].p);
    source.name = mk_str_c(name);
    return mk_watched_open(&source, message, &file->watched);
}

/* A file with its own copy of the list of keys: the watching thread reads it after host_stop has freed the host's. */
static struct auth_file *new_file(const struct auth_file *like)
{
    struct auth_file *file = mk_account_alloc(NULL, sizeof(*file) + like->n_keys * sizeof(*like->keys));
    if (!file)
        return NULL;
    *file = *like;
    if (like->n_keys)
        file->keys = memcpy(file + 1, like->keys, like->n_keys * sizeof(*like->keys));
    return file;
}

static void free_file(struct auth_file *file)
{
    mk_account_free(NULL, file, sizeof(*file) + file->n_keys * sizeof(*file->keys));
}

/* Opens what `like` describes. Returns 0 or -errno with a message. */
static int open_file(struct auth_generation *g, const struct auth_file *like, struct mk_buf *message)
{
    if (like->n_keys > MK_WATCHED_FILES_MAX) {
        mk_buf_addf(message, "there are more than %d files of keys", MK_WATCHED_FILES_MAX);
        return -EINVAL;
    }
    struct auth_file *file = new_file(like);
    if (!file)
        return -ENOMEM;
    file->index = g->n_files;
    file->next = g->files;
    int err = watch_file(file, message);
    if (err < 0) {
        free_file(file);
        return err;
    }
    g->files = file;
    g->n_files++;
    return 0;
}

/* Where a file of a section is reported. */
struct auth_place {
    struct mk_host *host;
    const struct auth_conf *conf;
    size_t offset;
};

/* Opens files. Returns NULL if they have an error, which is reported. */
static const struct auth_file *open_reported(struct auth_generation *g, const struct auth_file *like,
                                             const struct auth_place *at, int *err)
{
    MK_UNINITIALIZED MK_BUF_ON_STACK(message, MESSAGE_BYTES);
    int r = open_file(g, like, &message);
    const char *said = message.len ? mk_buf_cstr(&message) : strerror(-r);
    if (r == 0 && message.len)
        mk_host_warn(at->host, at->conf, at->offset, 0, "%s", said);
    else if (r < 0)
        mk_host_error(at->host, at->conf, at->offset, 0, "%s", said);
    *err = r < 0 ? r : *err;
    return r == 0 ? g->files : NULL;
}

/* Returns a file of users or groups; NULL: the key is not set, or the file has an error, which is reported. */
static const struct auth_file *get_file(struct mk_host *host, struct auth_generation *g, const struct auth_conf *conf,
                                        enum auth_file_kind kind, int *err)
{
    bool has_groups = kind == AUTH_FILE_GROUPS;
    struct auth_place at = {host, conf,
                            has_groups ? offsetof(struct auth_conf, groups) : offsetof(struct auth_conf, users)};
    struct auth_file like = {.kind = kind, .path = has_groups ? conf->groups : conf->users};
    if (conf->type != AUTH_BASIC || !like.path.len)
        return NULL;
    const struct auth_file *file = find_file(g, like.path, kind);
    return file ? file : open_reported(g, &like, &at, err);
}

void rules_close_files(struct auth_generation *g)
{
    while (g->files) {
        struct auth_file *file = g->files;
        g->files = file->next;
        mk_watched_close(file->watched);
        free_file(file);
    }
}

/* ── rules ── */

/* Makes the rules for tokens, and opens the files of their keys. Returns 0 or -errno, reported. */
static int make_token_rule(struct mk_host *host, struct auth_generation *g, struct auth_host *h, struct auth_rule *rule)
{
    int err = 0;
    const struct auth_conf *c = rule->conf;
    uint32_t n = c->keys.n + c->secrets.n;
    struct keys_file *files = mk_arena_alloc(&h->arena, (n + 1) * sizeof(*files));
    rule->claims = mk_arena_zalloc(&h->arena, sizeof(*rule->claims));
    if (!files || !rule->claims)
        return -ENOMEM;
    if (c->keys.n)
        memcpy(files, c->keys.items, c->keys.n * sizeof(*files));
    if (c->secrets.n)
        memcpy(files + c->keys.n, c->secrets.items, c->secrets.n * sizeof(*files));
    *rule->claims = (struct claims_rules){.issuers = {c->issuers.items, c->issuers.n},
                                          .audiences = {c->audiences.items, c->audiences.n},
                                          .scopes = {c->scopes.items, c->scopes.n},
                                          .needs = c->claims.items,
                                          .needs_n = c->claims.n,
                                          .leeway_s = c->leeway_ms / 1000,
                                          .expiry_optional = !c->expiry_required};
    struct auth_file like = {.kind = AUTH_FILE_KEYS, .keys = files, .n_keys = n};
    struct auth_place at = {host, c,
                            c->keys.n ? offsetof(struct auth_conf, keys) : offsetof(struct auth_conf, secrets)};
    rule->keys = n ? open_reported(g, &like, &at, &err) : NULL;
    return err;
}

/* Opens what a section with `Type Forward` needs. Returns 0 or -errno, reported. */
static int make_forward_rule(struct mk_host *host, struct auth_generation *g, struct auth_host *h,
                             struct auth_rule *rule)
{
    struct forward *f = mk_arena_zalloc(&h->arena, sizeof(*f));
    if (!f)
        return -ENOMEM;
    rule->forward = f; /* closed with the rule */
    g->keeps_answers |= rule->conf->forward.cache_ms > 0;
    struct auth_process *process = mk_generation_plugin_state(mk_host_generation(host), &mk_plugin_auth);
    return forward_open(f, host, rule->conf, &process->registry);
}

static struct mk_str make_challenge(struct mk_arena *arena, const struct auth_conf *conf)
{
    struct mk_buf text;
    mk_buf_init(&text, 4096);
    mk_buf_adds(&text, MK_STR("Basic realm=\""));
    mk_quoted_escape(&text, conf->realm);
    mk_buf_adds(&text, MK_STR("\", charset=\"UTF-8\""));
    struct mk_str copy = text.err ? MK_STR_NONE : mk_arena_dup(arena, mk_buf_str(&text));
    mk_buf_release(&text);
    return copy;
}

/* Adds the rule of a section. Returns 0 or -errno, reported. */
static int add_rule(struct mk_host *host, struct auth_generation *g, struct auth_host *h, const struct auth_conf *conf)
{
    int err = 0;
    struct auth_rule *rules = mk_arena_grow(&h->arena, h->rules, h->n, sizeof(*rules));
    if (!rules)
        return -ENOMEM;
    h->rules = rules;
    struct auth_rule *rule = &rules[h->n];
    *rule = (struct auth_rule){.conf = conf, .challenge = make_challenge(&h->arena, conf)};
    if (!rule->challenge.p)
        return -ENOMEM;
    rule->users = get_file(host, g, conf, AUTH_FILE_USERS, &err);
    rule->groups = get_file(host, g, conf, AUTH_FILE_GROUPS, &err);
    h->n++;
    if (conf->type == AUTH_FORWARD)
        return make_forward_rule(host, g, h, rule);
    return conf->type == AUTH_BEARER ? make_token_rule(host, g, h, rule) : err;
}

static const struct mk_pattern *get_pattern(const void *rules, uint32_t number)
{
    return &((const struct auth_rule *)rules)[number].conf->match;
}

int rules_make(struct mk_host *host, struct auth_generation *g, struct auth_host **ret)
{
    const struct auth_conf *conf = settings_first(host);
    *ret = NULL;
    if (!conf)
        return 0;
    struct auth_host *h = mk_account_alloc(NULL, sizeof(*h));
    if (!h)
        return -ENOMEM;
    *h = (struct auth_host){.n = 0};
    mk_arena_init(&h->arena, NULL, ARENA_BYTES_MAX, NULL, 0);
    int err = settings_check_order(host);
    for (; conf && err != -ENOMEM; conf = settings_next(host, conf)) {
        int r = add_rule(host, g, h, conf);
        err = r < 0 ? r : err;
    }
    h->index = mk_pattern_index_new(get_pattern, h->rules, h->n, &h->arena);
    err = err == 0 && !h->index ? -ENOMEM : err;
    *ret = err == 0 ? h : NULL;
    if (err < 0)
        rules_free(h);
    return err == 0 || err == -ENOMEM ? err : -EINVAL;
}

void rules_free(struct auth_host *h)
{
    if (!h) /* a host without sections */
        return;
    for (unsigned i = 0; i < h->n; i++)
        if (h->rules[i].forward)
            forward_close(h->rules[i].forward);
    mk_arena_release(&h->arena);
    mk_account_free(NULL, h, sizeof(*h));
}

int rules_find(const struct auth_host *h, struct mk_str path, const struct auth_rule **ret)
{
    *ret = NULL;
    for (uint32_t i = 0; (i = mk_pattern_index_next(h->index, path, i)) < h->n; i++) {
        int match = mk_pattern_match(&h->rules[i].conf->match, path);
        if (match < 0)
            return match;
        if (match) {
            *ret = &h->rules[i];
            break;
        }
    }
    return 0;
}

bool rules_protects(const struct auth_rule *rule)
{
    return rule->conf->type != AUTH_OFF || rule->conf->client_certificate;
}

struct auth_process *rules_process(const struct mk_request *req)
{
    return mk_generation_plugin_state(mk_worker_generation(mk_request_worker(req)), &mk_plugin_auth);
}

void rules_count_login(const struct mk_request *req, enum login_type type, enum login_result result)
{
    login_counters_add(type, result, mk_request_worker(req));
}

const struct auth_limits *rules_limits(const struct mk_request *req)
{
    return settings_limits(mk_worker_generation(mk_request_worker(req)));
}

/* ── users ── */

static void *get_value(struct auth_worker *worker, const struct auth_file *file)
{
    assert(!file || (worker && file->index < worker->n));
    return file ? mk_watched_ref_get(&worker->refs[file->index]) : NULL;
}

static struct auth_worker *get_worker(const struct mk_request *req)
{
    return mk_worker_state(mk_request_worker(req), &mk_plugin_auth);
}

const struct users *rules_worker_users(struct auth_worker *worker, const struct auth_rule *rule)
{
    return get_value(worker, rule->users);
}

const struct users *rules_users(struct mk_request *req, const struct auth_rule *rule)
{
    return get_value(get_worker(req), rule->users);
}

const struct key_set *rules_keys(struct mk_request *req, const struct auth_rule *rule)
{
    return get_value(get_worker(req), rule->keys);
}

static bool is_required(const struct auth_require *r, const struct groups *groups, struct mk_str user)
{
    for (uint32_t i = 0; i < r->names.n; i++)
        if (r->kind == AUTH_REQUIRE_USER ? mk_str_eq(r->names.items[i], user)
                                         : groups && groups_contain(groups, r->names.items[i], user))
            return true;
    return r->kind == AUTH_REQUIRE_VALID;
}

bool rules_admits(struct mk_request *req, const struct auth_rule *rule, struct mk_str user)
{
    const struct auth_require *r = rule->conf->require;
    const struct groups *groups = get_value(get_worker(req), rule->groups);
    if (!r)
        return true;
    while (r && !is_required(r, groups, user))
        r = r->next;
    return r;
}

struct auth_exchange *rules_get_exchange(struct mk_request *req)
{
    struct auth_exchange *x = mk_request_state(req, &mk_plugin_auth);
    if (x)
        return x;
    x = mk_arena_zalloc(mk_request_arena(req), sizeof(*x));
    return x && mk_request_set_state(req, &mk_plugin_auth, x) == 0 ? x : NULL;
}

int rules_keep_login(struct mk_request *req, const struct auth_rule *rule, struct mk_str user)
{
    struct auth_exchange *x = rules_get_exchange(req);
    if (!x || (user.p && mk_request_set_user(req, user) < 0))
        return -ENOMEM;
    x->admitted = rule;
    return MK_DECLINED;
}

bool rules_has_login(const struct mk_request *req, const struct auth_rule *rule)
{
    const struct auth_exchange *x = mk_request_state(req, &mk_plugin_auth);
    return x && x->admitted == rule;
}

enum { PLACE_BYTES = 1024 };

/* ── users and groups ── */

/* Returns true if a line of the file has the name. `value` is what was made of the file. */
static bool has_name(const struct auth_file *file, const void *value, struct mk_str name)
{
    return file->kind == AUTH_FILE_USERS ? users_find(value, name) != NULL : groups_have(value, name);
}

/* Warns of the names of one line of `Require` that the file does not have. `nth`: which line. */
static void check_line(struct mk_host *host, const struct auth_rule *rule, const struct auth_require *r, unsigned nth)
{
    struct mk_watched_ref ref;
    bool is_user = r->kind == AUTH_REQUIRE_USER;
    const struct auth_file *file = is_user ? rule->users : rule->groups;
    if (!file || r->kind == AUTH_REQUIRE_VALID)
        return;
    mk_watched_ref_peek(&ref, file->watched);
    for (uint32_t i = 0; i < r->names.n; i++)
        if (!has_name(file, mk_watched_ref_get(&ref), r->names.items[i]))
            mk_host_warn(host, rule->conf, offsetof(struct auth_conf, require), nth,
                         "no line of \"%s\" has the %s \"%.*s\"", is_user ? "Users" : "Groups",
                         is_user ? "user" : "group", (int)r->names.items[i].len, r->names.items[i].p);
    mk_watched_ref_release(&ref);
}

/* ── certificates ── */

/* Reports a section that asks for a client certificate where the handshake does not. Returns 0 or -EINVAL. */
static int check_certificate(struct mk_host *host, const struct auth_conf *c)
{
    if (!c->client_certificate || mk_host_asks_certificate(host))
        return 0;
    mk_host_error(host, c, offsetof(struct auth_conf, client_certificate), 0,
                  "this host asks no client for a certificate: set \"ClientCertificate Optional\" in its [TLS]");
    return -EINVAL;
}

/* ── delays ── */

/* Returns the first section with a login whose failures are delayed, or NULL. */
static const struct auth_conf *find_login(const struct auth_host *h)
{
    unsigned i = 0;
    while (i < h->n && h->rules[i].conf->type != AUTH_BASIC && h->rules[i].conf->type != AUTH_BEARER)
        i++;
    return i < h->n ? h->rules[i].conf : NULL;
}

/*
 * Compares FailureDelay with HandlerTimeout, which would end the wait with 503. The message names the section with the
 * login, `c`, because neither of the two may be in a file. Returns 0 or -EINVAL.
 */
static int check_delay(struct mk_host *host, const struct auth_conf *c)
{
    const struct auth_limits *limits = settings_limits(mk_host_generation(host));
    uint32_t least_ms, delay_ms = limits->delay_ms, timeout_ms = mk_host_handler_timeout_ms(host, &least_ms);
    const size_t offset = offsetof(struct auth_limits, delay_ms);
    MK_BUF_ON_STACK(text, PLACE_BYTES);
    mk_host_conf_origin(host, c, &text);
    if (delay_ms >= timeout_ms)
        mk_host_error(host, limits, offset, 0,
                      "FailureDelay of [AUTH_LIMITS], %" PRIu32 " ms, must be shorter than HandlerTimeout, %" PRIu32
                      " ms: failed logins of [AUTH] in %s would get 503",
                      delay_ms, timeout_ms, mk_buf_cstr(&text));
    else if (delay_ms >= least_ms)
        mk_host_warn(host, limits, offset, 0,
                     "FailureDelay of [AUTH_LIMITS], %" PRIu32 " ms, is not shorter than a HandlerTimeout of [LIMITS], "
                     "%" PRIu32 " ms: failed logins of [AUTH] in %s get 503 for its paths",
                     delay_ms, least_ms, mk_buf_cstr(&text));
    return delay_ms >= timeout_ms ? -EINVAL : 0;
}

/* Warns of a ForwardTimeout that HandlerTimeout ends before: the log has another reason then. */
static void check_forward_timeout(struct mk_host *host, const struct auth_conf *c)
{
    uint32_t least_ms;
    mk_host_handler_timeout_ms(host, &least_ms);
    if (c->type == AUTH_FORWARD && c->forward.timeout_ms >= least_ms)
        mk_host_warn(host, c, offsetof(struct auth_conf, forward.timeout_ms), 0,
                     "ForwardTimeout, %" PRIu32 " ms, is not shorter than HandlerTimeout, %" PRIu32
                     " ms: requests get 503 for that",
                     c->forward.timeout_ms, least_ms);
}

int rule_check(struct mk_host *host, const struct auth_host *h)
{
    const struct auth_conf *login = find_login(h);
    int err = login ? check_delay(host, login) : 0;
    for (unsigned i = 0; i < h->n; i++) {
        unsigned nth = 0;
        for (const struct auth_require *r = h->rules[i].conf->require; r; r = r->next)
            check_line(host, &h->rules[i], r, nth++);
        check_forward_timeout(host, h->rules[i].conf);
        if (check_certificate(host, h->rules[i].conf) < 0)
            err = -EINVAL;
    }
    return err;
}
