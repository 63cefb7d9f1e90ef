// SPDX-License-Identifier: Apache-2.0
/*
 * Rules and their files (rules.h).
 */
#include "rules.h"

#include <assert.h>
#include <errno.h>
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

static const struct mk_watched_type file_types[] = {
    [false] = {.load = load_users, .free = free_users},
    [true] = {.load = load_groups, .free = free_groups},
};

static struct auth_file *find_file(struct auth_generation *g, struct mk_str path, bool has_groups)
{
    struct auth_file *file = g->files;
    while (file && !(file->has_groups == has_groups && mk_str_eq(file->path, path)))
        file = file->next;
    return file;
}

/* Loads a file for the first time. Returns 0 or -errno with a message. */
static int open_file(struct auth_generation *g, struct mk_str path, bool has_groups, struct mk_buf *message)
{
    char name[128];
    struct auth_file *file = mk_account_alloc(NULL, sizeof(*file));
    if (!file)
        return -ENOMEM;
    *file = (struct auth_file){.has_groups = has_groups, .path = path, .index = g->n_files, .next = g->files};
    snprintf(name, sizeof(name), "auth: the %s of %.*s", has_groups ? "groups" : "users",
             path.len > 90 ? 90 : (int)path.len, path.p);
    struct mk_watched_source source = {
        .type = &file_types[has_groups], .ctx = file, .name = mk_str_c(name), .paths = &path, .n = 1};
    int err = mk_watched_open(&source, message, &file->watched);
    if (err < 0) {
        mk_account_free(NULL, file, sizeof(*file));
        return err;
    }
    g->files = file;
    g->n_files++;
    return 0;
}

/* Returns the file of a section's key; NULL: it is not set, or has an error, which was reported. */
static const struct auth_file *get_file(struct mk_host *host, struct auth_generation *g, const struct auth_conf *conf,
                                        bool has_groups, int *err)
{
    char text[MESSAGE_BYTES];
    struct mk_buf message;
    struct mk_str path = has_groups ? conf->groups : conf->users;
    size_t offset = has_groups ? offsetof(struct auth_conf, groups) : offsetof(struct auth_conf, users);
    struct auth_file *file = path.len ? find_file(g, path, has_groups) : NULL;
    if (file || !path.len || conf->type == AUTH_OFF)
        return file;
    mk_buf_init_fixed(&message, text, sizeof(text));
    int r = open_file(g, path, has_groups, &message);
    if (r == 0 && message.len)
        mk_host_warn(host, conf, offset, 0, "%.*s: %s", MK_STR_ARG(path), mk_buf_cstr(&message));
    else if (r < 0)
        mk_host_error(host, conf, offset, 0, "%s", message.len ? mk_buf_cstr(&message) : strerror(-r));
    *err = r < 0 ? r : *err;
    return r == 0 ? g->files : NULL;
}

void rules_close_files(struct auth_generation *g)
{
    while (g->files) {
        struct auth_file *file = g->files;
        g->files = file->next;
        mk_watched_close(file->watched);
        mk_account_free(NULL, file, sizeof(*file));
    }
}

/* ── rules ── */

static struct mk_str make_challenge(struct mk_arena *arena, const struct auth_conf *conf)
{
    struct mk_buf text;
    mk_buf_init(&text, 4096);
    mk_buf_adds(&text, MK_STR("Basic realm=\""));
    for (size_t i = 0; i < conf->realm.len; i++) {
        if (conf->realm.p[i] == '"' || conf->realm.p[i] == '\\')
            mk_buf_addc(&text, '\\');
        mk_buf_addc(&text, conf->realm.p[i]);
    }
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
    rule->users = get_file(host, g, conf, false, &err);
    rule->groups = get_file(host, g, conf, true, &err);
    h->n++;
    return err;
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
    *ret = err == 0 ? h : NULL;
    if (err < 0)
        rules_free(h);
    return err == 0 || err == -ENOMEM ? err : -EINVAL;
}

void rules_free(struct auth_host *h)
{
    mk_arena_release(&h->arena);
    mk_account_free(NULL, h, sizeof(*h));
}

int rules_find(const struct auth_host *h, struct mk_str path, const struct auth_rule **ret)
{
    *ret = NULL;
    for (unsigned i = 0; i < h->n; i++) {
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

const struct groups *rules_groups(struct mk_request *req, const struct auth_rule *rule)
{
    return get_value(get_worker(req), rule->groups);
}

static bool is_required(const struct auth_require *r, const struct groups *groups, struct mk_str user)
{
    for (uint32_t i = 0; i < r->n; i++)
        if (r->kind == AUTH_REQUIRE_USER ? mk_str_eq(r->names[i], user)
                                         : groups && groups_contain(groups, r->names[i], user))
            return true;
    return r->kind == AUTH_REQUIRE_VALID;
}

bool rules_admits(struct mk_request *req, const struct auth_rule *rule, struct mk_str user)
{
    const struct auth_require *r = rule->conf->require;
    const struct groups *groups = rules_groups(req, rule);
    if (!r)
        return true;
    while (r && !is_required(r, groups, user))
        r = r->next;
    return r;
}
