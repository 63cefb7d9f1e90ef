// SPDX-License-Identifier: Apache-2.0
/*
 * Opens what a path of a host names, for other plugins: the hook open_path.
 */
#ifndef STATIC_HOST_PATH_H
#define STATIC_HOST_PATH_H

#include "site.h"

#include <stdint.h>

/*
 * As mk_host_open_path(), for a path of the host whose site is `site`. A file that TryFiles would send in place of the
 * path does not count: -ENOENT.
 */
int mk__static_host_path_open(struct static_site *site, struct mk_str path, uint32_t flags);
/* As explain_path of struct mk_plugin, for a path of the host whose site is `site`. */
bool mk__static_host_path_explain(struct static_site *site, struct mk_str path, struct mk_buf *out);
/* As load_path() of struct mk_file_server, for a path of the host whose site is `site`. */
int mk__static_host_path_load(struct static_site *site, struct mk_str path, struct mk_file_loader *loader);
/* As each_place() of struct mk_file_server. */
void mk__static_host_path_each_place(struct static_site *site, mk_file_place_fn fn, void *ctx);

#endif
