// SPDX-License-Identifier: Apache-2.0
/*
 * Results of queries: collected in a builder, then one block of memory. Nothing here knows SQLite.
 */
#ifndef DUDA_PACKAGES_SQLITE_ROWS_H
#define DUDA_PACKAGES_SQLITE_ROWS_H

#include <duda/packages/sqlite/sqlite.h>

enum { SQ_CELL_BYTES = 24 }; /* what a value counts, with its bytes, in bytes_max */

/* A value. Bytes of texts and blobs are after the cells, with a NUL. */
struct sq_cell {
    enum duda_sqlite_type type;
    size_t len;
    union {
        int64_t integer;
        double real;
        size_t offset;
    };
};

struct sq_builder {
    struct sq_cell *cells; /* the names of the columns, then row after row */
    char *bytes;
    size_t n_cells, cells_room, n_bytes, bytes_room;
    uint64_t bytes_max;
};

/* A builder begins zeroed, with bytes_max. Returns 0, -E2BIG or -ENOMEM. `value` may be of the builder's caller. */
int sq_builder_add(struct sq_builder *b, struct duda_sqlite_value value);
/* Returns the result of `columns` columns, for mem->free(), or NULL without memory. The builder stays as it is. */
duda_sqlite_rows_t *sq_builder_make(const struct sq_builder *b, unsigned columns);
void sq_builder_release(struct sq_builder *b);

/* The functions of the API. */
bool sq_rows_next(duda_sqlite_rows_t *rows);
size_t sq_rows_count(const duda_sqlite_rows_t *rows);
unsigned sq_rows_columns(const duda_sqlite_rows_t *rows);
int sq_rows_column(const duda_sqlite_rows_t *rows, const char *name);
enum duda_sqlite_type sq_rows_type(const duda_sqlite_rows_t *rows, int column);
int64_t sq_rows_int(const duda_sqlite_rows_t *rows, int column);
double sq_rows_double(const duda_sqlite_rows_t *rows, int column);
const char *sq_rows_text(const duda_sqlite_rows_t *rows, int column);
const void *sq_rows_bytes(const duda_sqlite_rows_t *rows, int column, size_t *ret_len);

#endif
