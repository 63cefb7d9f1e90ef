// SPDX-License-Identifier: Apache-2.0
/*
 * Directives, and which clients may see the status (section.h).
 */
#include "section.h"

#include <errno.h>

static int parse_path(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    struct mk_str *path = field, text = value->text;
    *path = MK_STR("");
    bool fits = value->n == 1 && text.len > 1 && text.p[0] == '/' && text.p[text.len - 1] != '/';
    for (size_t i = 0; fits && i < text.len; i++)
        fits = text.p[i] > ' ' && text.p[i] < 0x7f && !strchr("?#%\\", text.p[i]);
    if (!fits || memmem(text.p, text.len, "//", 2) || memmem(text.p, text.len, "/.", 2)) {
        mk_buf_addf(error, "one path is needed, which starts with a slash, does not end with one, and has only "
                           "characters that need no encoding");
        return -EINVAL;
    }
    *path = mk_arena_dup(arena, text);
    return path->p ? 0 : -ENOMEM;
}

static const struct mk_conf_key keys[] = {
    MK_CONF_KEY_BOOL(struct settings, enabled, "Enabled", "Off", "Serve the status."),
    MK_CONF_KEY_CUSTOM(struct settings, status_path, "StatusPath", "/status",
                       "The status as JSON; with a slash behind it, the live page.", .unit = "path",
                       .parse = parse_path),
    MK_CONF_KEY_CUSTOM(struct settings, metrics_path, "MetricsPath", "/metrics", "The metrics for Prometheus.",
                       .unit = "path", .parse = parse_path),
    MK_CONF_KEY_LIST(
        struct settings, listeners, "Listener", NULL,
        "Serve the status on these listeners only, by the address of their `Listen` lines, to every "
        "client that can connect there; they serve nothing else. Without this key: on every listener, to "
        "clients on this machine (loopback addresses and Unix sockets) that ask for an address, `localhost` or a "
        "`ServerName` of the host. Clients behind a proxy on this "
        "machine count as such unless `TrustedProxies` names the proxy.",
        .flags = MK_CONF_REPEAT),
    MK_CONF_KEY_BOOL(struct settings, paths, "Paths", "Off",
                     "Count the paths of requests, without queries, for the lists of the busiest and the slowest ones. "
                     "This takes 100 KB for each worker."),
    MK_CONF_KEY_INT(struct settings, streams_max, "MaxPages", "16",
                    "How many live pages may be open; further ones get 503 for their figures.", .min = 1, .max = 1000),
    {0},
};

static void check_settings(const struct mk_conf_check *check, void *section)
{
    const struct settings *s = section;
    if (mk_str_eq(s->status_path, s->metrics_path) && s->status_path.len)
        mk_conf_error(check, offsetof(struct settings, metrics_path), "\"StatusPath\" has the same path");
    if (s->listeners.n && !s->enabled)
        mk_conf_error(check, offsetof(struct settings, listeners),
                      "\"Enabled On\" is missing: the listener would have nothing to serve");
}

const struct mk_conf_section section_status[] = {
    {.name = "STATUS",
     .scope = MK_CONF_SCOPE_SERVER,
     .size = sizeof(struct settings),
     .keys = keys,
     .check = check_settings,
     .doc = MK_CONF_DOC("What the server is doing: metrics, a document in JSON and a live page. "
                        "See docs/guide/status.md.")},
    {0},
};

int section_check_host(struct mk_host *host, const struct settings *s)
{
    int err = 0;
    for (uint32_t i = 0; i < s->listeners.n; i++) {
        if (mk_host_has_listener(host, s->listeners.items[i]))
            continue;
        mk_host_error(host, s, offsetof(struct settings, listeners), i, "there is no line \"Listen %.*s\"",
                      MK_STR_ARG(s->listeners.items[i]));
        err = -EINVAL;
    }
    return err;
}

/* ── access ── */

static bool is_local(const struct mk_address *address)
{
    static const uint8_t loopback6[16] = {[15] = 1};
    if (address->family == AF_INET)
        return address->bytes[0] == 127;
    if (address->family == AF_INET6)
        return memcmp(address->bytes, loopback6, sizeof(loopback6)) == 0;
    return address->family == AF_UNIX;
}

bool section_has_listener(const struct settings *s, struct mk_str text)
{
    for (uint32_t i = 0; i < s->listeners.n; i++)
        if (mk_str_eq(s->listeners.items[i], text))
            return true;
    return false;
}

/*
 * A page of another site can let its own name resolve to this machine (DNS rebinding), and its scripts may then read
 * what they get here. It cannot choose an address, localhost or a name of the configuration.
 */
static bool is_own_name(struct mk_request *req)
{
    struct mk_str name = mk_request_host(req);
    struct mk_address address;
    return !name.len || mk_str_ieq(name, MK_STR("localhost")) || mk_address_parse(name, &address) == 0 ||
           mk_host_has_name(mk_request_host_conf(req), name);
}

bool section_allows(const struct settings *s, struct mk_request *req)
{
    if (s->listeners.n)
        return section_has_listener(s, mk_request_listener(req));
    struct mk_address peer = mk_request_peer(req), client = mk_request_client(req);
    return is_local(&peer) && is_local(&client) && (peer.family == AF_UNIX || is_own_name(req));
}
