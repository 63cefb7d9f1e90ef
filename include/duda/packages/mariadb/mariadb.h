// SPDX-License-Identifier: Apache-2.0
/*
 * The original API: the package mariadb. This server has none, because it would need the library of MariaDB: services
 * of that time compile, and do not start, which the log says. The arguments of 2013 and 2014 differ, and are not
 * declared.
 */
#ifndef DUDA_PACKAGES_MARIADB_H
#define DUDA_PACKAGES_MARIADB_H

#include "../../webservice.h"

enum { MARIADB_OK = 0, MARIADB_ERR = -1 };

typedef struct mariadb_conn mariadb_conn_t;
typedef struct mariadb_query mariadb_query_t;
typedef struct mariadb_result mariadb_result_t;

struct duda_old_mariadb {
    mariadb_conn_t *(*create_conn)();
    int (*create_pool)();
    mariadb_conn_t *(*pool_get_conn)(), *(*pool_get_conn_async)();
    int (*set_ssl)(), (*pool_set_ssl)();
    int (*connect)(), (*connect_async)(), (*dthread_connect)();
    void *(*query)(); /* a number in 2013, a result in 2014 */
    int (*query_async)();
    mariadb_result_t *(*dthread_query)();
    char **(*get_row)(), **(*dthread_get_row)();
    char **(*get_fields)(), **(*dthread_get_fields)();
    int (*get_field_num)(), (*dthread_get_field_num)();
    unsigned long (*escape)();
    void (*abort)(), (*abort_async)();
    void (*disconnect)(), (*disconnect_async)(), (*dthread_disconnect)();
};

DUDA_PACKAGE(struct duda_old_mariadb, mariadb)

#endif
