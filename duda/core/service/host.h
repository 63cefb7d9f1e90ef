// SPDX-License-Identifier: Apache-2.0
/*
 * The services of a host in one generation: its sections [WEB_SERVICE], checked, opened, and found by the paths of
 * requests. A service that cannot be used stays in the table, so that its URLs get 503.
 */
#ifndef DUDA_CORE_SERVICE_HOST_H
#define DUDA_CORE_SERVICE_HOST_H

#include "service/services.h"

/* [DUDA] */
struct duda_conf {
    struct mk_str services_root, packages_root, document_root;
    bool log_limit;
};

struct host_service {
    const struct service_conf *conf; /* as the host has it; valid as long as the generation */
    struct service *service;         /* NULL: it could not be loaded */
    struct mk_str segment;           /* the first segment of its paths; empty: it is the root of the host */
    unsigned index;                  /* in the generation */
    struct mk_str console;           /* the path of its console below its URL, without a last slash; empty: none */
    bool no_console;                 /* also not that of console->dashboard() */
};

struct duda_host {
    struct duda_host *next; /* in the generation */
    struct mk_host *host;
    struct service_set *set;
    struct mk_buf site;        /* "NAME@FILE", since listeners may have hosts of the same name */
    struct host_service *root; /* NULL: none */
    unsigned n, sections;      /* services; sections[WEB_SERVICE], which are at least as many */
    struct host_service services[];
};

/*
 * Opens the services of a host, which has `section` at least once. `*n_services` counts those of the generation.
 * Returns 0, -EINVAL (errors were reported) or -ENOMEM. Call host_close() if `*ret` is set.
 */
int host_open(struct mk_host *host, struct service_set *set, const struct mk_conf_section *section,
              const struct duda_conf *server, unsigned *n_services, struct duda_host **ret);
/*
 * Runs the services that do not run yet, unless the configuration is only checked, and then knows the URLs of all.
 * Returns 0, -EINVAL (errors were reported) or -ENOMEM.
 */
int host_run(struct duda_host *h, const struct duda_conf *server, bool is_check);
/* Warns if PackagesRoot of [DUDA] is no folder: services find out only when they load a package. */
void host_check_packages(struct duda_host *h, const struct duda_conf *server);
void host_close(struct duda_host *h);

/* Returns the service of a path, and what of the path is below its URL; NULL: there is none. */
const struct host_service *host_find(const struct duda_host *h, struct mk_str path, struct mk_str *ret_rest);

#endif
