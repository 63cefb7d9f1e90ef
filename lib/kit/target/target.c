// SPDX-License-Identifier: Apache-2.0
/*
 * Reads what names another server in a directive (<monkey/kit/target.h>), and finds groups of servers.
 */
#include <monkey/kit/encoded_slash.h>
#include <monkey/kit/target.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *const mk_encoded_slash_names[] = {"Refuse", "Keep", "Decode", NULL};

/* ── TLS ── */

enum { ERROR_BYTES = 1024 };

/* Returns the offset of the key that a field of the transport's settings comes from. */
static size_t find_key(const struct mk_target_tls_keys *keys, size_t field)
{
    const struct {
        size_t field, key;
    } rows[] = {
        {offsetof(struct mk_transport_client_conf, ca_file), keys->ca},
        {offsetof(struct mk_transport_client_conf, certificate), keys->certificate},
        {offsetof(struct mk_transport_client_conf, key), keys->key},
    };
    for (size_t i = 0; i < MK_COUNT_OF(rows); i++)
        if (rows[i].field == field && rows[i].key)
            return rows[i].key;
    return keys->server_name;
}

int mk_target_open_tls(struct mk_host *host, const void *section, const struct mk_target_tls_keys *keys,
                       const struct mk_transport_client_conf *conf, const struct mk_transport **ret_transport,
                       struct mk_transport_client **ret_client)
{
    static const struct mk_str protocol = MK_STR_INIT("http/1.1");
    struct mk_transport_client_conf settings = *conf;
    size_t field = 0;
    settings.protocols = &protocol;
    settings.n_protocols = 1;
    MK_BUF_ON_STACK(error, ERROR_BYTES);
    const struct mk_transport *tls = mk_generation_transport(mk_host_generation(host), "tls", &error);
    int err = tls ? tls->client_open(&settings, ret_client, &field, &error) : -EINVAL;
    if (err == -EINVAL)
        mk_host_error(host, section, tls ? find_key(keys, field) : keys->name, 0, "%s", mk_buf_cstr(&error));
    if (err == 0)
        *ret_transport = tls;
    return err;
}

/* ── servers that cannot be connected to ── */

/* Returns why a socket cannot be used now; NULL: it can, as far as can be told. */
static const char *check_socket(const char *path)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return errno == ENOENT ? "does not exist now" : strerror(errno);
    if (!S_ISSOCK(st.st_mode))
        return "is no socket";
    return faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) < 0 ? "may not be opened by the user of this server" : NULL;
}

void mk_target_check(struct mk_host *host, const void *section, size_t offset, unsigned nth,
                     const struct mk_dial_target *target)
{
    const char *problem = target && !target->port ? check_socket(target->host.p) : NULL;
    if (target && mk_generation_listens(mk_host_generation(host), target))
        mk_host_warn(host, section, offset, nth,
                     "%.*s is this server itself, by a Listen line: a request that comes back to the section which "
                     "passes it on gets 508 in the end",
                     MK_STR_ARG(target->text));
    else if (problem)
        mk_host_warn(host, section, offset, nth, "the socket %.*s %s: requests get 502 until it can be used",
                     MK_STR_ARG(target->host), problem);
}

/* ── names of servers ── */

enum { HTTP_PORT = 80, HTTPS_PORT = 443, GROUPS_BYTES_MAX = 4096 };

static int parse_dial(struct mk_target *t, struct mk_str text, int port, const char *kind, struct mk_arena *arena,
                      struct mk_buf *error)
{
    const char *why = NULL;
    int err = mk_dial_target_parse(arena, text, port, &t->dial, &why);
    if (err < 0 && err != -ENOMEM)
        mk_buf_addf(error, "\"%.*s\" is no address of a %s: %s", MK_STR_ARG(text), kind, why);
    return err;
}

/* ── URLs ── */

static int parse_authority(struct mk_target *t, struct mk_str rest, int port, const char *kind, struct mk_arena *arena,
                           struct mk_buf *error)
{
    t->authority = mk_str_until(rest, "/?#");
    size_t n = t->authority.len;
    if (!n)
        return mk_conf_fail(error, "the URL has no host");
    if (memchr(rest.p, '@', n))
        return mk_conf_fail(error, "a URL with a user cannot be used");
    if (n < rest.len)
        t->path = mk_str_after(rest, n);
    return parse_dial(t, t->authority, port, kind, arena, error);
}

static int parse_unix(struct mk_target *t, const char *kind, struct mk_arena *arena, struct mk_buf *error)
{
    t->authority = MK_STR("localhost");
    return parse_dial(t, t->text, 0, kind, arena, error);
}

int mk_target_parse_url(struct mk_target *t, struct mk_str text, const char *kind, struct mk_arena *arena,
                        struct mk_buf *error)
{
    struct mk_str http = MK_STR("http://"), https = MK_STR("https://");
    t->text = text;
    t->is_tls = mk_str_istarts(text, https);
    if (t->is_tls)
        return parse_authority(t, mk_str_after(text, https.len), HTTPS_PORT, kind, arena, error);
    if (mk_str_istarts(text, http))
        return parse_authority(t, mk_str_after(text, http.len), HTTP_PORT, kind, arena, error);
    return mk_str_istarts(text, MK_STR("unix:")) ? parse_unix(t, kind, arena, error) : MK_DECLINED;
}

int mk_target_parse_address(struct mk_target *t, struct mk_str text, const char *kind, struct mk_arena *arena,
                            struct mk_buf *error)
{
    bool may_be_group = !memchr(text.p, '.', text.len) && !memchr(text.p, ':', text.len);
    t->text = t->authority = text;
    if (mk_str_istarts(text, MK_STR("unix:")))
        return parse_unix(t, kind, arena, error);
    return parse_dial(t, text, may_be_group ? 1 : MK_DIAL_PORT_REQUIRED, kind, arena, error);
}

/* ── groups ── */

/* Writes the names of the groups that there are. */
static void write_groups(struct mk_buf *out, const struct mk_generation *g)
{
    const struct mk_upstreams *upstreams = mk_generation_upstreams(g);
    struct mk_str name = upstreams ? upstreams->group_name(g, 0) : MK_STR("");
    for (unsigned n = 1; name.len; name = upstreams->group_name(g, n++))
        mk_buf_addf(out, "%s%.*s", n == 1 ? "; the groups are: " : ", ", MK_STR_ARG(name));
}

/* A third of the characters may be wrong. */
struct mk_str mk_target_find_near_group(const struct mk_generation *g, struct mk_str name)
{
    const struct mk_upstreams *upstreams = mk_generation_upstreams(g);
    struct mk_str best = MK_STR(""), next = upstreams ? upstreams->group_name(g, 0) : MK_STR("");
    unsigned best_distance = (unsigned)name.len / 3 + 1;
    for (unsigned n = 1; next.len; next = upstreams->group_name(g, n++)) {
        unsigned distance = mk_str_distance(name, next);
        if (distance < best_distance) {
            best_distance = distance;
            best = next;
        }
    }
    return best;
}

static void warn_of_name(struct mk_host *host, const void *section, size_t offset, struct mk_str name)
{
    struct mk_buf groups;
    struct mk_str near = mk_target_find_near_group(mk_host_generation(host), name);
    mk_buf_init(&groups, GROUPS_BYTES_MAX);
    write_groups(&groups, mk_host_generation(host));
    if (near.len)
        mk_buf_addf(&groups, "; did you mean %.*s?", MK_STR_ARG(near));
    mk_host_warn(host, section, offset, 0,
                 "no [UPSTREAM] has the name \"%.*s\", which is looked up as that of a server%s", MK_STR_ARG(name),
                 mk_buf_cstr(&groups));
    mk_buf_release(&groups);
}

/* A name with a port is that of a server, also if a group has it. */
static void warn_of_port(struct mk_host *host, const void *section, size_t offset, struct mk_str name)
{
    const struct mk_generation *g = mk_host_generation(host);
    const struct mk_upstreams *upstreams = mk_generation_upstreams(g);
    struct mk_str group = mk_str_until(name, ":");
    if (upstreams && group.len < name.len && upstreams->find(g, group))
        mk_host_warn(host, section, offset, 0,
                     "%.*s has a port, and so is not the group \"%.*s\" of [UPSTREAM], whose servers have ports: write "
                     "%.*s alone",
                     MK_STR_ARG(name), MK_STR_ARG(group), MK_STR_ARG(group));
}

void mk_target_find_group(const struct mk_target *t, struct mk_host *host, const void *section, size_t offset,
                          const struct mk_upstreams **ret_upstreams, const struct mk_upstream_group **ret_group)
{
    const struct mk_generation *g = mk_host_generation(host);
    struct mk_str name = t->authority;
    if (!t->dial || !t->dial->port)
        return;
    if (memchr(name.p, '.', name.len) || memchr(name.p, ':', name.len)) {
        warn_of_port(host, section, offset, name);
        return;
    }
    *ret_upstreams = mk_generation_upstreams(g);
    *ret_group = *ret_upstreams ? (*ret_upstreams)->find(g, name) : NULL;
    if (!*ret_group && !mk_str_ieq(name, MK_STR("localhost")))
        warn_of_name(host, section, offset, name);
}
