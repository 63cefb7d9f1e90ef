// SPDX-License-Identifier: Apache-2.0
/*
 * The services of the process: which one a section gets, how it is loaded and run, and when it ends.
 *
 *     service_open ─► service_run: duda_main() ─► service_worker_get (each worker) ─► requests
 *     service_put, the last one: duda_exit() ─► dlclose
 */
#ifndef DUDA_CORE_SERVICE_SERVICES_H
#define DUDA_CORE_SERVICE_SERVICES_H

#include "service/service.h"

/* Returns an empty set, or NULL without memory. */
struct service_set *service_set_new(const struct mk_plugin *plugin, objects_bind_fn *bind, const struct feature *rows);
/* Frees the services that were kept because of threads which have ended meanwhile. */
void service_set_reap(struct service_set *set);
/* Frees a set that no generation uses. Services with threads that run on stay in memory until these end. */
void service_set_free(struct service_set *set);

/*
 * Returns the service of a section with a reference: one that runs already for this host, section and file, or one that
 * is loaded but does not run yet. Returns NULL with a sentence in `error` if it cannot be loaded.
 */
struct service *service_open(struct service_set *set, const struct mk_host *host, struct mk_str site,
                             const struct service_conf *conf, struct mk_buf *error);
/*
 * Returns the service that runs for this host and section, whatever the file is now, with a reference; NULL: none does.
 */
struct service *service_find(struct service_set *set, struct mk_str site, const struct service_conf *conf);
/* Calls duda_main() unless the service runs. Returns 0, or -1 with a sentence in `error`. */
int service_run(struct service *s, struct mk_buf *error);
/* Drops a reference; the last one ends the service. */
void service_put(struct service *s);

#endif
