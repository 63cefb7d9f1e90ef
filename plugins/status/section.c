// SPDX-License-Identifier: Apache-2.0
/*
 * Directives, and which clients may see the status (section.h).
 */
#include "section.h"

#include <monkey/embedded.h>
#include <monkey/local_client.h>

#include <errno.h>

static const struct mk_conf_key keys[] = {
    MK_CONF_KEY_BOOL(struct settings, enabled, "Enabled", "Off", "Serve the status."),
    MK_CONF_KEY_CUSTOM(struct settings, status_path, "StatusPath", "/status",
                       "The status as JSON; with a slash behind it, the live page.", .unit = "path",
                       .parse = mk_embedded_parse_path),
    MK_CONF_KEY_CUSTOM(struct settings, metrics_path, "MetricsPath", "/metrics", "The metrics for Prometheus.",
                       .unit = "path", .parse = mk_embedded_parse_path),
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
    if (s->listeners.n && err == 0 && !mk_host_listens_elsewhere(host, &s->listeners))
        mk_host_warn(
            host, s, offsetof(struct settings, listeners), 0,
            "the server listens nowhere else, and serves nothing else here: add a line \"Listen\" for the sites");
    return err;
}

/* ── access ── */

bool section_has_listener(const struct settings *s, struct mk_str text)
{
    for (uint32_t i = 0; i < s->listeners.n; i++)
        if (mk_str_eq(s->listeners.items[i], text))
            return true;
    return false;
}

bool section_allows(const struct settings *s, struct mk_request *req)
{
    if (s->listeners.n)
        return section_has_listener(s, mk_request_listener(req));
    return mk_local_client_is_here(req);
}
