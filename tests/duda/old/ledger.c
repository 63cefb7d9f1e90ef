// SPDX-License-Identifier: Apache-2.0
/* 2013: databases of packages that the server does not have. */
#include "webservice.h"
#include "packages/mariadb/mariadb.h"
#include "packages/postgresql/postgresql.h"

DUDA_REGISTER("Old services", "Ledger");

duda_global_t pool;

void on_connect(mariadb_conn_t *conn, int status, duda_request_t *dr)
{
    if (status != MARIADB_OK) {
        response->cont(dr);
        response->end(dr, NULL);
    }
}

void on_row(void *data, unsigned long n, char **fields, char **values, duda_request_t *dr)
{
    response->printf(dr, "%s\n", n ? values[0] : "");
}

void on_end(void *data, mariadb_query_t *query, duda_request_t *dr)
{
    response->printf(dr, "end\n");
}

void on_leave(postgresql_conn_t *conn, int status, duda_request_t *dr)
{
    response->cont(dr);
    response->http_status(dr, status == POSTGRESQL_OK ? 200 : 500);
    response->end(dr, NULL);
}

void cb_sums(duda_request_t *dr)
{
    mariadb_conn_t *conn = mariadb->pool_get_conn(&pool, dr, on_connect);

    response->wait(dr);
    mariadb->query(conn, "SELECT sum FROM ledger", NULL, on_row, on_end, dr);
    mariadb->disconnect(conn, on_leave);
}

void cb_rows(void *data)
{
    duda_request_t *dr = data;
    mariadb_conn_t *conn = mariadb->create_conn(dr, "user", "secret", "localhost", NULL, 0, NULL, 0);
    int status = mariadb->dthread_connect(conn), error;
    mariadb_result_t *result = mariadb->query(conn, "SELECT * FROM ledger");
    char **row;

    while (status == MARIADB_OK && (row = mariadb->get_row(conn, result, &error))) {
        response->printf(dr, "%s\n", row[0]);
    }
}

void cb_uri(duda_request_t *dr)
{
    postgresql_conn_t *conn = postgresql->connect_uri(dr, on_connect, "user=postgres");

    postgresql->query(conn, "SELECT 1", NULL, on_row, on_end, dr);
    postgresql->disconnect(conn, on_leave);
}

int duda_main()
{
    duda_load_package(postgresql, "postgresql");
    duda_load_package(mariadb, "mariadb");
    duda_global_init(&pool, NULL, NULL);
    mariadb->create_pool(&pool, 0, 0, "user", "secret", "localhost", NULL, 0, NULL, 0);
    map->static_add("/sums", "cb_sums");
    map->static_add("/uri", "cb_uri");
    return 0;
}
