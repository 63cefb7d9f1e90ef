// SPDX-License-Identifier: Apache-2.0
/*
 * The library libmonkey-inspect.a (<monkey/inspect.h>) is linked into plugins, so that the server does not grow. It
 * reads the structs of the server, and calls those functions of it that are not public through this table.
 *
 *     plugin ─► libmonkey-inspect.a ─► struct mk__thread, mk__context, mk__conn ... (read)
 *                     └──────────────► mk_inspect_core ─► functions of the server
 */
#ifndef MK_SERVER_INSPECT_CORE_H
#define MK_SERVER_INSPECT_CORE_H

#include "http/conn.h"
#include "server/worker/thread.h"

struct mk_inspect_core {
    const char *version;
    /* The sizes of the structs that are read: all must be those that the library was built with. */
    uint32_t conn_bytes, http_bytes, request_bytes, thread_bytes, generation_bytes, server_bytes;
    const struct mk__state_info *conn_states;
    const struct mk_conf_section *limits, *handlers;
    int (*abort_conn)(struct mk__conn *c);
    uint64_t (*next_timer_ms)(const struct mk__wheel *wheel);
    const void *(*conf_get)(const struct mk__conf_set *set, const struct mk_conf_section *section);
    const void *(*conf_next)(const struct mk__conf_set *set, const struct mk_conf_section *section, const void *data);
    struct mk__conf_origin (*conf_origin)(const struct mk__conf_set *set, const void *data, size_t offset,
                                          unsigned nth);
    void (*print_origin)(struct mk__conf_origin origin, struct mk_buf *out);
    void (*show)(const struct mk__conf_set *set, struct mk_buf *out);
    struct mk_host *(*find_host)(const struct mk_generation *g, const void *listener, struct mk_str name);
    int (*find_handler)(const struct mk_host *host, struct mk_str path, const struct mk__handler **ret_handler);
};

MK_API extern const struct mk_inspect_core mk_inspect_core;

/* Returns the thread of a worker. */
static inline struct mk__thread *mk__inspect_core_thread(const struct mk_worker *worker)
{
    return MK_CONTAINER_OF(worker->request_refs, struct mk__thread, request_refs);
}

#endif
