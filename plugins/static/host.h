// SPDX-License-Identifier: Apache-2.0
/*
 * The hooks of the plugin that concern hosts, each with the contract of its member of struct mk_plugin. A host's state
 * is its struct static_site.
 */
#ifndef STATIC_HOST_H
#define STATIC_HOST_H

#include <monkey/inspect.h>

#include "site.h"

extern const struct mk_plugin mk_plugin_static;

/* host_start and host_stop. */
int mk__static_host_start(struct mk_host *host, void **ret_state);
void mk__static_host_stop(struct mk_host *host, void *state);
/* generation_check: opens what plugins before this one have added, and learns which files are programs of others. */
int mk__static_host_check_all(struct mk_generation *g, void *state);

/* open_path, file_server and explain */
int mk__static_host_open_path(const struct mk_host *host, struct mk_str path, uint32_t flags);
extern const struct mk_file_server mk__static_host_file_server;
bool mk__static_host_explain_path(const struct mk_host *host, struct mk_str path, struct mk_buf *out);
void mk__static_host_explain(const struct mk_host *host, struct mk_explain *e);

#endif
