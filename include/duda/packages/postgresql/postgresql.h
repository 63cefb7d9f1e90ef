// SPDX-License-Identifier: Apache-2.0
/*
 * The package postgresql, with callbacks.
 */
#ifndef DUDA_PACKAGES_POSTGRESQL_H
#define DUDA_PACKAGES_POSTGRESQL_H

#include "../../package.h"

struct duda_global;

typedef struct postgresql_conn postgresql_conn_t;
typedef struct postgresql_query postgresql_query_t;

typedef void(postgresql_connect_cb)(postgresql_conn_t *conn, int status, duda_request_t *dr);
typedef void(postgresql_disconnect_cb)(postgresql_conn_t *conn, int status, duda_request_t *dr);
typedef void(postgresql_query_result_cb)(void *privdata, postgresql_query_t *query, int n_fields, char **fields,
                                         duda_request_t *dr);
typedef void(postgresql_query_row_cb)(void *privdata, postgresql_query_t *query, int n_fields, char **fields,
                                      char **values, duda_request_t *dr);
typedef void(postgresql_query_end_cb)(void *privdata, postgresql_query_t *query, duda_request_t *dr);

struct duda_api_postgresql {
    postgresql_conn_t *(*connect)(duda_request_t *dr, postgresql_connect_cb *fn, const char *const *keys,
                                  const char *const *values, int expand_dbname);
    postgresql_conn_t *(*connect_uri)(duda_request_t *dr, postgresql_connect_cb *fn, const char *uri);
    int (*create_pool_params)(struct duda_global *key, int min_size, int max_size, const char *const *keys,
                              const char *const *values, int expand_dbname);
    int (*create_pool_uri)(struct duda_global *key, int min_size, int max_size, const char *uri);
    postgresql_conn_t *(*get_conn)(struct duda_global *key, duda_request_t *dr, postgresql_connect_cb *fn);
    int (*query)(postgresql_conn_t *conn, const char *sql, postgresql_query_result_cb *on_result,
                 postgresql_query_row_cb *on_row, postgresql_query_end_cb *on_end, void *privdata);
    int (*query_params)(postgresql_conn_t *conn, const char *sql, int n_params, const char *const *values,
                        const int *lengths, const int *formats, int result_format,
                        postgresql_query_result_cb *on_result, postgresql_query_row_cb *on_row,
                        postgresql_query_end_cb *on_end, void *privdata);
    int (*query_prepared)(postgresql_conn_t *conn, const char *name, int n_params, const char *const *values,
                          const int *lengths, const int *formats, int result_format,
                          postgresql_query_result_cb *on_result, postgresql_query_row_cb *on_row,
                          postgresql_query_end_cb *on_end, void *privdata);
    char *(*escape_literal)(postgresql_conn_t *conn, const char *text, size_t len);
    char *(*escape_identifier)(postgresql_conn_t *conn, const char *text, size_t len);
    unsigned char *(*escape_binary)(postgresql_conn_t *conn, const unsigned char *data, size_t len, size_t *ret_len);
    void (*abort)(postgresql_query_t *query);
    void (*disconnect)(postgresql_conn_t *conn, postgresql_disconnect_cb *fn);
};

DUDA_PACKAGE(struct duda_api_postgresql, postgresql)

#endif
