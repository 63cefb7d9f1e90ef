// SPDX-License-Identifier: Apache-2.0
/*
 * The package mariadb. In level 2 the plain names wait within a coroutine, and the functions with callbacks have the
 * suffix _async; before that the plain names are those with callbacks. Without a level both forms compile.
 */
#ifndef DUDA_PACKAGES_MARIADB_H
#define DUDA_PACKAGES_MARIADB_H

#include "../../package.h"

struct duda_global;

typedef struct mariadb_conn mariadb_conn_t;
typedef struct mariadb_query mariadb_query_t;
typedef struct mariadb_result mariadb_result_t;

typedef void(mariadb_connect_cb)(mariadb_conn_t *conn, int status, duda_request_t *dr);
typedef void(mariadb_disconnect_cb)(mariadb_conn_t *conn, int status, duda_request_t *dr);
typedef void(mariadb_query_result_cb)(void *privdata, mariadb_query_t *query, unsigned int n_fields, char **fields,
                                      duda_request_t *dr);
typedef void(mariadb_query_row_cb)(void *privdata, mariadb_query_t *query, unsigned int n_fields, char **fields,
                                   char **values, duda_request_t *dr);
typedef void(mariadb_query_end_cb)(void *privdata, mariadb_query_t *query, duda_request_t *dr);

#if defined(DUDA_OLD_ANY_LEVEL) && !defined(__cplusplus)
#define DUDA_MARIADB_FORM(before, in_2) ()
#elif DUDA_API_LEVEL < 2
#define DUDA_MARIADB_FORM(before, in_2) before
#else
#define DUDA_MARIADB_FORM(before, in_2) in_2
#endif

struct duda_api_mariadb {
    mariadb_conn_t *(*create_conn)(duda_request_t *dr, const char *user, const char *password, const char *ip,
                                   const char *db, unsigned int port, const char *unix_socket,
                                   unsigned long client_flags);
    int (*create_pool)(struct duda_global *key, int min_size, int max_size, const char *user, const char *password,
                       const char *ip, const char *db, unsigned int port, const char *unix_socket,
                       unsigned long client_flags);
    void (*set_ssl)(mariadb_conn_t *conn, const char *key, const char *cert, const char *ca, const char *ca_path,
                    const char *cipher);
    void (*pool_set_ssl)(struct duda_global *key, const char *ssl_key, const char *cert, const char *ca,
                         const char *ca_path, const char *cipher);
    unsigned long (*escape)(mariadb_conn_t *conn, char *to, const char *from, unsigned long len);

    mariadb_conn_t *(*pool_get_conn)DUDA_MARIADB_FORM((struct duda_global * key, duda_request_t *dr,
                                                       mariadb_connect_cb *fn),
                                                      (struct duda_global * key, duda_request_t *dr));
    int(*connect) DUDA_MARIADB_FORM((mariadb_conn_t * conn, mariadb_connect_cb *fn), (mariadb_conn_t * conn));
    void(*disconnect) DUDA_MARIADB_FORM((mariadb_conn_t * conn, mariadb_disconnect_cb *fn), (mariadb_conn_t * conn));
    void (*abort)(mariadb_query_t *query);
    /* Level 2: returns a mariadb_result_t *; before that, 0 or -1. */
    intptr_t(*query) DUDA_MARIADB_FORM((mariadb_conn_t * conn, const char *sql, mariadb_query_result_cb *on_result,
                                        mariadb_query_row_cb *on_row, mariadb_query_end_cb *on_end, void *privdata),
                                       (mariadb_conn_t * conn, const char *sql));

    mariadb_conn_t *(*pool_get_conn_async)(struct duda_global *key, duda_request_t *dr, mariadb_connect_cb *fn);
    int (*connect_async)(mariadb_conn_t *conn, mariadb_connect_cb *fn);
    void (*disconnect_async)(mariadb_conn_t *conn, mariadb_disconnect_cb *fn);
    void (*abort_async)(mariadb_query_t *query);
    int (*query_async)(mariadb_conn_t *conn, const char *sql, mariadb_query_result_cb *on_result,
                       mariadb_query_row_cb *on_row, mariadb_query_end_cb *on_end, void *privdata);
    char **(*get_row)(mariadb_result_t *result);
    char **(*get_fields)(mariadb_result_t *result);
    unsigned int (*get_field_num)(mariadb_result_t *result);
    void (*free_result)(mariadb_result_t *result);
};

DUDA_PACKAGE(struct duda_api_mariadb, mariadb)

#endif
