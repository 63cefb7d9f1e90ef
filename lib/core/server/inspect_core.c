// SPDX-License-Identifier: Apache-2.0
/*
 * What the library for inspection needs of the server (server/inspect_core.h).
 */
#include "server/inspect_core.h"

#include "server/generation/handlers.h"
#include "server/generation/path_limits.h"
#include "server/server.h"
#include "version.h"

const struct mk_inspect_core mk_inspect_core = {
    .version = MK__VERSION,
    .conn_bytes = sizeof(struct mk__conn),
    .http_bytes = sizeof(struct mk__context),
    .request_bytes = sizeof(struct mk_request),
    .thread_bytes = sizeof(struct mk__thread),
    .generation_bytes = sizeof(struct mk_generation),
    .server_bytes = sizeof(struct mk_server),
    .conn_states = mk__conn_states,
    .limits = &mk__section_limits,
    .handlers = &mk__section_handlers,
    .abort_conn = mk__conn_abort,
    .next_timer_ms = mk__wheel_next_ms,
    .conf_get = mk__conf_get,
    .conf_next = mk__conf_next,
    .conf_origin = mk__conf_origin,
    .print_origin = mk__conf_origin_print,
    .show = mk__conf_show,
    .find_host = mk__generation_find_host,
    .find_handler = mk__handlers_find,
};
