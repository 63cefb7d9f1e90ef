// SPDX-License-Identifier: Apache-2.0
#include "passwords.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

/* ── reading ── */

static int report_error(struct mk_buf *message, const char *path, int err)
{
    mk_buf_addf(message, "%s cannot be read: %s", path, strerror(-err));
    return err;
}

enum { ARENA_BYTES_MAX = 256 * 1024 * 1024 };

/* Reads a file. Returns 0 or -errno with a message. */
static int read_file(const char *path, struct mk_arena *arena, struct mk_file_bytes *ret, struct mk_buf *message)
{
    *ret = (struct mk_file_bytes){.len = 0};
    int err = mk_file_read(path, HTPASSWD_BYTES_MAX, arena, ret);
    if (err < 0) {
        mk_buf_addf(message, "%s ", path);
        mk_file_add_read_error(message, err, HTPASSWD_BYTES_MAX);
    }
    return err;
}

static void wipe_bytes(struct mk_file_bytes *bytes)
{
    if (bytes->data)
        explicit_bzero(bytes->data, bytes->len);
}

static int report_mistake(struct mk_buf *message, const char *path, const struct htpasswd_reader *r)
{
    mk_buf_addf(message, "%s:%u:%u: %s", path, r->line, r->column, r->error);
    return -EINVAL;
}

/* ── users ── */

static int compare_users(const void *a, const void *b)
{
    return mk_str_compare(((const struct htpasswd_user *)a)->name, ((const struct htpasswd_user *)b)->name);
}

/* Returns 1 (another user was added), 0 (the end) or -errno. */
static int add_user(struct users *u, struct htpasswd_reader *r)
{
    struct htpasswd_user user;
    int more = htpasswd_next_user(r, &user);
    if (more <= 0)
        return more;
    if (u->n == HTPASSWD_USERS_MAX) {
        r->column = 1;
        r->error = "the file has more than 200000 users";
        return -EINVAL;
    }
    struct htpasswd_user *items = mk_arena_grow(&u->arena, u->items, u->n, sizeof(*items));
    if (!items)
        return -ENOMEM;
    u->items = items;
    u->items[u->n++] = user;
    u->n_sha1 += user.scheme == SCHEME_SHA1;
    return 1;
}

/* Reports a name that two lines have. The strings tell the lines, as they point into the file. */
static int check_duplicates(const struct users *u, const char *path, struct mk_buf *message)
{
    for (uint32_t i = 1; i < u->n; i++) {
        const struct htpasswd_user *a = &u->items[i - 1], *b = &u->items[i];
        if (!mk_str_eq(a->name, b->name))
            continue;
        const char *later = a->name.p > b->name.p ? a->name.p : b->name.p;
        unsigned line = 1;
        for (const char *p = u->bytes.data; p < later; p++)
            line += *p == '\n';
        mk_buf_addf(message, "%s:%u:1: this user is in an earlier line already", path, line);
        return -EINVAL;
    }
    return 0;
}

static int parse_users(struct users *u, const char *path, struct mk_buf *message)
{
    struct htpasswd_reader r;
    int more;
    htpasswd_begin(&r, mk_str(u->bytes.data, u->bytes.len));
    while ((more = add_user(u, &r)) > 0)
        ;
    if (more == -ENOMEM)
        return report_error(message, path, more);
    if (more < 0)
        return report_mistake(message, path, &r);
    if (u->n)
        qsort(u->items, u->n, sizeof(*u->items), compare_users);
    return check_duplicates(u, path, message);
}

int users_load(const char *path, struct users **ret, struct mk_buf *message)
{
    struct users *u = mk_account_alloc(NULL, sizeof(*u));
    if (!u)
        return report_error(message, path, -ENOMEM);
    *u = (struct users){.n = 0};
    mk_arena_init(&u->arena, NULL, ARENA_BYTES_MAX, NULL, 0);
    int err = read_file(path, &u->arena, &u->bytes, message);
    if (err == 0)
        err = parse_users(u, path, message);
    if (err < 0) {
        users_free(u);
        return err;
    }
    *ret = u;
    return 0;
}

void users_free(struct users *u)
{
    if (!u)
        return;
    wipe_bytes(&u->bytes);
    mk_arena_release(&u->arena);
    mk_account_free(NULL, u, sizeof(*u));
}

void users_add_warnings(const struct users *u, struct mk_buf *message)
{
    if (!u->n)
        mk_buf_addf(message, "the file has no users, so that all logins fail");
    else if (u->bytes.mode & S_IROTH)
        mk_buf_addf(message, "all users of the machine can read the hashes of this file (chmod 640)");
    if (u->n_sha1)
        mk_buf_addf(message,
                    "%s%u of %u users have a {SHA} hash, which is broken soon once it is stolen: set their "
                    "passwords again with mk_passwd",
                    message->len ? "; " : "", u->n_sha1, u->n);
}

const struct htpasswd_user *users_find(const struct users *u, struct mk_str name)
{
    struct htpasswd_user key = {.name = name};
    return u->n ? bsearch(&key, u->items, u->n, sizeof(*u->items), compare_users) : NULL;
}

/* ── groups ── */

static int compare_members(const void *a, const void *b)
{
    const struct htpasswd_member *x = a, *y = b;
    int order = mk_str_compare(x->group, y->group);
    return order ? order : mk_str_compare(x->user, y->user);
}

/* Returns 1 (another member was added), 0 (the end) or -errno. */
static int add_member(struct groups *g, struct htpasswd_reader *r)
{
    struct htpasswd_member member;
    int more = htpasswd_next_member(r, &member);
    if (more <= 0)
        return more;
    if (g->n == HTPASSWD_MEMBERS_MAX) {
        r->column = 1;
        r->error = "the groups have more than 1000000 members";
        return -EINVAL;
    }
    struct htpasswd_member *items = mk_arena_grow(&g->arena, g->items, g->n, sizeof(*items));
    if (!items)
        return -ENOMEM;
    g->items = items;
    g->items[g->n++] = member;
    return 1;
}

static int parse_groups(struct groups *g, const char *path, struct mk_buf *message)
{
    struct htpasswd_reader r;
    int more;
    htpasswd_begin(&r, mk_str(g->bytes.data, g->bytes.len));
    while ((more = add_member(g, &r)) > 0)
        ;
    if (more == -ENOMEM)
        return report_error(message, path, more);
    if (more < 0)
        return report_mistake(message, path, &r);
    if (g->n)
        qsort(g->items, g->n, sizeof(*g->items), compare_members);
    return 0;
}

int groups_load(const char *path, struct groups **ret, struct mk_buf *message)
{
    struct groups *g = mk_account_alloc(NULL, sizeof(*g));
    if (!g)
        return report_error(message, path, -ENOMEM);
    *g = (struct groups){.n = 0};
    mk_arena_init(&g->arena, NULL, ARENA_BYTES_MAX, NULL, 0);
    int err = read_file(path, &g->arena, &g->bytes, message);
    if (err == 0)
        err = parse_groups(g, path, message);
    if (err < 0) {
        groups_free(g);
        return err;
    }
    *ret = g;
    return 0;
}

void groups_free(struct groups *g)
{
    if (!g)
        return;
    wipe_bytes(&g->bytes);
    mk_arena_release(&g->arena);
    mk_account_free(NULL, g, sizeof(*g));
}

static int compare_group(const void *key, const void *member)
{
    return mk_str_compare(*(const struct mk_str *)key, ((const struct htpasswd_member *)member)->group);
}

bool groups_have(const struct groups *g, struct mk_str group)
{
    return g->n && bsearch(&group, g->items, g->n, sizeof(*g->items), compare_group);
}

bool groups_contain(const struct groups *g, struct mk_str group, struct mk_str user)
{
    struct htpasswd_member key = {group, user};
    return g->n && user.len && bsearch(&key, g->items, g->n, sizeof(*g->items), compare_members);
}
