// SPDX-License-Identifier: Apache-2.0
/*
 * The original API: the package postgresql. This server has none, because it would need the library of PostgreSQL:
 * services of that time compile, and do not start, which the log says. The arguments are not declared.
 */
#ifndef DUDA_PACKAGES_POSTGRESQL_H
#define DUDA_PACKAGES_POSTGRESQL_H

#include "../../webservice.h"

enum { POSTGRESQL_OK = 0, POSTGRESQL_ERR = -1 };

typedef struct postgresql_conn postgresql_conn_t;
typedef struct postgresql_query postgresql_query_t;

struct duda_old_postgresql {
    postgresql_conn_t *(*connect)(), *(*connect_uri)();
    int (*create_pool_params)(), (*create_pool_uri)();
    postgresql_conn_t *(*get_conn)();
    int (*query)(), (*query_params)(), (*query_prepared)();
    char *(*escape_literal)(), *(*escape_identifier)();
    unsigned char *(*escape_binary)(), *(*unescape_binary)();
    void (*abort)(), (*free)(), (*disconnect)();
};

DUDA_PACKAGE(struct duda_old_postgresql, postgresql)

#endif
