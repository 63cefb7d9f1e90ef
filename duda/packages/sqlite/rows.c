// SPDX-License-Identifier: Apache-2.0
/*
 * Results of queries.
 *
 *     struct duda_sqlite_rows │ names of columns │ cells of row 1 │ row 2 ... │ bytes of texts and blobs
 */
#include "rows.h"

#include <duda/mem.h>

#include <assert.h>
#include <errno.h>
#include <string.h>

struct duda_sqlite_rows {
    size_t n_rows, at; /* `at`: 0 before the first row */
    unsigned n_columns;
    struct sq_cell cells[];
};

/* ── building ── */

/* Makes room for `more` after `used` of `size` bytes each. Returns false without memory. */
static bool grow_array(void **array, size_t *room, size_t used, size_t more, size_t size)
{
    assert(used <= *room);
    size_t wanted = *room ? *room : 64;
    while (wanted - used < more)
        wanted *= 2;
    if (wanted == *room)
        return true;
    void *grown = mem->realloc(*array, wanted * size);
    if (!grown)
        return false;
    *array = grown;
    *room = wanted;
    return true;
}

static bool has_bytes(enum duda_sqlite_type type)
{
    return type == DUDA_SQLITE_TEXT || type == DUDA_SQLITE_BLOB;
}

int sq_builder_add(struct sq_builder *b, struct duda_sqlite_value value)
{
    assert(!has_bytes(value.type) || value.bytes || !value.len);
    size_t more = has_bytes(value.type) ? value.len + 1 : 0;
    uint64_t taken = b->n_bytes + (uint64_t)b->n_cells * SQ_CELL_BYTES;
    if (taken > b->bytes_max || value.len > b->bytes_max - taken)
        return -E2BIG;
    if (!grow_array((void **)&b->cells, &b->cells_room, b->n_cells, 1, sizeof(*b->cells)) ||
        !grow_array((void **)&b->bytes, &b->bytes_room, b->n_bytes, more, 1))
        return -ENOMEM;
    struct sq_cell *cell = &b->cells[b->n_cells++];
    *cell = (struct sq_cell){.type = value.type, .len = more ? value.len : 0, .integer = value.integer};
    if (!more)
        return 0;
    cell->offset = b->n_bytes;
    if (value.len)
        memcpy(b->bytes + b->n_bytes, value.bytes, value.len);
    b->bytes[b->n_bytes + value.len] = '\0';
    b->n_bytes += more;
    return 0;
}

duda_sqlite_rows_t *sq_builder_make(const struct sq_builder *b, unsigned columns)
{
    assert(!columns || (b->n_cells >= columns && b->n_cells % columns == 0));
    size_t cells = b->n_cells * sizeof(*b->cells);
    duda_sqlite_rows_t *rows = mem->alloc(sizeof(*rows) + cells + b->n_bytes);
    if (!rows)
        return NULL;
    rows->at = 0;
    rows->n_columns = columns;
    rows->n_rows = columns ? b->n_cells / columns - 1 : 0;
    if (cells)
        memcpy(rows->cells, b->cells, cells);
    if (b->n_bytes)
        memcpy((char *)rows->cells + cells, b->bytes, b->n_bytes);
    return rows;
}

void sq_builder_release(struct sq_builder *b)
{
    mem->free(b->cells);
    mem->free(b->bytes);
}

/* ── reading ── */

static const char *bytes_of(const duda_sqlite_rows_t *rows, const struct sq_cell *cell)
{
    assert(has_bytes(cell->type));
    const struct sq_cell *end = rows->cells + (rows->n_rows + 1) * rows->n_columns;
    return (const char *)end + cell->offset;
}

/* Returns the cell of the row, or NULL. */
static const struct sq_cell *find_cell(const duda_sqlite_rows_t *rows, int column)
{
    if (!rows || !rows->at || column < 0 || (unsigned)column >= rows->n_columns)
        return NULL;
    return &rows->cells[rows->at * rows->n_columns + (unsigned)column];
}

bool sq_rows_next(duda_sqlite_rows_t *rows)
{
    if (!rows)
        return false;
    rows->at = rows->at < rows->n_rows ? rows->at + 1 : 0;
    return rows->at;
}

size_t sq_rows_count(const duda_sqlite_rows_t *rows)
{
    return rows ? rows->n_rows : 0;
}

unsigned sq_rows_columns(const duda_sqlite_rows_t *rows)
{
    return rows ? rows->n_columns : 0;
}

int sq_rows_column(const duda_sqlite_rows_t *rows, const char *name)
{
    for (unsigned i = 0; name && i < sq_rows_columns(rows); i++)
        if (strcmp(bytes_of(rows, &rows->cells[i]), name) == 0)
            return (int)i;
    return -1;
}

enum duda_sqlite_type sq_rows_type(const duda_sqlite_rows_t *rows, int column)
{
    const struct sq_cell *cell = find_cell(rows, column);
    return cell ? cell->type : DUDA_SQLITE_NULL;
}

static int64_t to_integer(double real)
{
    if (real >= 9223372036854775808.0) /* 2^63 */
        return INT64_MAX;
    if (real <= -9223372036854775808.0)
        return INT64_MIN;
    return real == real ? (int64_t)real : 0;
}

int64_t sq_rows_int(const duda_sqlite_rows_t *rows, int column)
{
    const struct sq_cell *cell = find_cell(rows, column);
    if (!cell)
        return 0;
    return cell->type == DUDA_SQLITE_INT      ? cell->integer
           : cell->type == DUDA_SQLITE_DOUBLE ? to_integer(cell->real)
                                              : 0;
}

double sq_rows_double(const duda_sqlite_rows_t *rows, int column)
{
    const struct sq_cell *cell = find_cell(rows, column);
    if (!cell)
        return 0;
    return cell->type == DUDA_SQLITE_DOUBLE ? cell->real : cell->type == DUDA_SQLITE_INT ? (double)cell->integer : 0;
}

const char *sq_rows_text(const duda_sqlite_rows_t *rows, int column)
{
    const struct sq_cell *cell = find_cell(rows, column);
    return cell && cell->type == DUDA_SQLITE_TEXT ? bytes_of(rows, cell) : NULL;
}

const void *sq_rows_bytes(const duda_sqlite_rows_t *rows, int column, size_t *ret_len)
{
    const struct sq_cell *cell = find_cell(rows, column);
    bool found = cell && has_bytes(cell->type);
    if (ret_len)
        *ret_len = found ? cell->len : 0;
    return found ? bytes_of(rows, cell) : NULL;
}
