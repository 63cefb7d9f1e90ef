// SPDX-License-Identifier: Apache-2.0
/*
 * Another server, as a directive names it: its address or the name of a group, TLS to it, and paths that it is asked
 * for. For plugins that pass requests on, or ask other servers. In the kit: plugins link -lmonkey-kit.
 */
#ifndef MONKEY_TARGET_H
#define MONKEY_TARGET_H

#include "../base/dial.h"
#include "../plugin.h"
#include "../upstreams.h"

MK_C_BEGIN

/* Constant once the configuration is loaded. */
struct mk_target {
    struct mk_str text;                /* as it was written */
    struct mk_str authority;           /* host and port, as Host has them; "localhost" for a Unix socket */
    struct mk_str path;                /* what follows the host in a URL; `.p` NULL: nothing */
    const struct mk_dial_target *dial; /* NULL: it was reported as wrong */
    bool is_tls;                       /* https:// */
};

/*
 * Reads `http://host:port/path`, `https://...` or `unix:/socket`; `text` lives as long as the target. `kind` is what
 * messages call the server: "backend".
 * Returns 0, MK_DECLINED (it begins with none of them), -ENOMEM, or -EINVAL with a sentence in `error`.
 */
MK_API int mk_target_parse_url(struct mk_target *t, struct mk_str text, const char *kind, struct mk_arena *arena,
                               struct mk_buf *error);
/*
 * Reads `host:port`, an address with a port, `unix:/socket`, or a name alone, which may be a group's: without one it
 * would need a port. Returns 0, -ENOMEM or -EINVAL.
 */
MK_API int mk_target_parse_address(struct mk_target *t, struct mk_str text, const char *kind, struct mk_arena *arena,
                                   struct mk_buf *error);

/*
 * Returns the name of the group that was probably meant by one that does not exist; empty: none is near. From
 * host_start on, any thread.
 */
MK_API struct mk_str mk_target_find_near_group(const struct mk_generation *g, struct mk_str name);

/*
 * Finds the group of servers that a target names: a name without dot and port that is a group's is the group. Warns at
 * the field at `offset` of a section, if no group has such a name. Leaves `*ret_group` NULL if the target
 * is a server. In host_start.
 */
MK_API void mk_target_find_group(const struct mk_target *t, struct mk_host *host, const void *section, size_t offset,
                                 const struct mk_upstreams **ret_upstreams, const struct mk_upstream_group **ret_group);

/*
 * Warns at the field at `offset` of a section, of the `nth` of its lines, if a server is this server itself, or a Unix
 * socket that cannot be used now; `target` NULL: nothing. During host_start and generation_check.
 */
MK_API void mk_target_check(struct mk_host *host, const void *section, size_t offset, unsigned nth,
                            const struct mk_dial_target *target);

/* The keys of a section about TLS, by the offsets of their fields; 0: it has no such key. */
struct mk_target_tls_keys {
    size_t name;                 /* also what is reported if the plugin tls is missing */
    size_t server_name;          /* or `name`, if that says the name */
    size_t ca, certificate, key; /* files */
};

/*
 * Opens settings for connections with TLS that carry HTTP/1.1, and reports mistakes at the keys of a section; in
 * host_start. `*ret_client` is released by client_close() of the transport. Returns 0, -EINVAL or -ENOMEM, and nothing
 * is set.
 */
MK_API int mk_target_open_tls(struct mk_host *host, const void *section, const struct mk_target_tls_keys *keys,
                              const struct mk_transport_client_conf *conf, const struct mk_transport **ret_transport,
                              struct mk_transport_client **ret_client);

MK_C_END

#endif
