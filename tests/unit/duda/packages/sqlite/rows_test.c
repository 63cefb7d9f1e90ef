// SPDX-License-Identifier: Apache-2.0
/* The package sqlite: results as one block of memory, their types and limits, and no memory. */
#include <duda/mem.h>

#include "testing.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "duda/packages/sqlite/rows.h"

static long countdown = -1;

static void *alloc(size_t size)
{
    return countdown >= 0 && countdown-- == 0 ? NULL : malloc(size);
}

static void *re_alloc(void *ptr, size_t size)
{
    return countdown >= 0 && countdown-- == 0 ? NULL : realloc(ptr, size);
}

static const struct duda_api_mem heap = {.alloc = alloc, .realloc = re_alloc, .free = free};

static int begin(void **state)
{
    (void)state;
    mem = &heap;
    countdown = -1;
    return 0;
}

/* Builds a result of `columns` columns. Returns 0 or an error. */
static int build(const struct duda_sqlite_value *values, size_t n, unsigned columns, uint64_t bytes_max,
                 duda_sqlite_rows_t **ret)
{
    struct sq_builder b = {.bytes_max = bytes_max};
    int err = 0;
    *ret = NULL;
    for (size_t i = 0; i < n && err == 0; i++)
        err = sq_builder_add(&b, values[i]);
    if (err == 0 && !(*ret = sq_builder_make(&b, columns)))
        err = -ENOMEM;
    sq_builder_release(&b);
    return err;
}

TEST(rows)
{
    const struct duda_sqlite_value values[] = {
        duda_sqlite_text("id"),  duda_sqlite_text("name"),   duda_sqlite_int(7),
        duda_sqlite_text("ada"), duda_sqlite_int(INT64_MIN), duda_sqlite_null(),
    };
    duda_sqlite_rows_t *rows;
    assert_int_equal(build(values, 6, 2, 1000, &rows), 0);
    assert_int_equal(sq_rows_count(rows), 2);
    assert_int_equal(sq_rows_columns(rows), 2);
    assert_int_equal(sq_rows_column(rows, "name"), 1);
    assert_int_equal(sq_rows_column(rows, "NAME"), -1);
    assert_int_equal(sq_rows_column(rows, NULL), -1);
    assert_int_equal(sq_rows_int(rows, 0), 0); /* before the first row */
    for (int round = 0; round < 2; round++) {
        assert_true(sq_rows_next(rows));
        assert_int_equal(sq_rows_int(rows, 0), 7);
        assert_string_equal(sq_rows_text(rows, 1), "ada");
        assert_int_equal(sq_rows_type(rows, 1), DUDA_SQLITE_TEXT);
        assert_int_equal(sq_rows_int(rows, 2), 0);
        assert_int_equal(sq_rows_int(rows, -1), 0);
        assert_true(sq_rows_next(rows));
        assert_true(sq_rows_int(rows, 0) == INT64_MIN);
        assert_null(sq_rows_text(rows, 1));
        assert_int_equal(sq_rows_type(rows, 1), DUDA_SQLITE_NULL);
        assert_false(sq_rows_next(rows));
    }
    free(rows);
}

TEST(types)
{
    const char bytes[] = {'a', 0, 'b'};
    const struct duda_sqlite_value values[] = {
        duda_sqlite_text("a"),     duda_sqlite_text("b"),      duda_sqlite_text("c"),      duda_sqlite_text("d"),
        duda_sqlite_double(-2.9),  duda_sqlite_blob(bytes, 3), duda_sqlite_blob(bytes, 0), duda_sqlite_text_n("xyz", 2),
        duda_sqlite_double(1e300), duda_sqlite_double(-1e300), duda_sqlite_double(NAN),    duda_sqlite_int(3),
    };
    duda_sqlite_rows_t *rows;
    size_t len;
    assert_int_equal(build(values, COUNT(values), 4, 1000, &rows), 0);
    assert_true(sq_rows_next(rows));
    assert_int_equal(sq_rows_int(rows, 0), -2);
    assert_true(sq_rows_double(rows, 0) == -2.9);
    assert_memory_equal(sq_rows_bytes(rows, 1, &len), bytes, 3);
    assert_int_equal(len, 3);
    assert_null(sq_rows_text(rows, 1));
    assert_non_null(sq_rows_bytes(rows, 2, &len));
    assert_int_equal(len, 0);
    assert_string_equal(sq_rows_text(rows, 3), "xy");
    assert_int_equal(sq_rows_int(rows, 3), 0);
    assert_true(sq_rows_double(rows, 3) == 0);
    assert_null(sq_rows_bytes(rows, 0, &len));
    assert_true(sq_rows_next(rows));
    assert_true(sq_rows_int(rows, 0) == INT64_MAX && sq_rows_int(rows, 1) == INT64_MIN);
    assert_int_equal(sq_rows_int(rows, 2), 0);
    assert_true(sq_rows_double(rows, 3) == 3);
    free(rows);
}

TEST(no_rows)
{
    duda_sqlite_rows_t *rows;
    size_t len = 1;
    assert_int_equal(build(NULL, 0, 0, 10, &rows), 0); /* a statement without columns */
    assert_int_equal(sq_rows_count(rows), 0);
    assert_false(sq_rows_next(rows));
    free(rows);
    assert_false(sq_rows_next(NULL));
    assert_int_equal(sq_rows_count(NULL), 0);
    assert_int_equal(sq_rows_columns(NULL), 0);
    assert_int_equal(sq_rows_column(NULL, "a"), -1);
    assert_int_equal(sq_rows_type(NULL, 0), DUDA_SQLITE_NULL);
    assert_null(sq_rows_bytes(NULL, 0, &len));
    assert_int_equal(len, 0);
}

TEST(values_of_null)
{
    assert_int_equal(duda_sqlite_text(NULL).type, DUDA_SQLITE_NULL);
    assert_int_equal(duda_sqlite_text_n(NULL, 3).len, 0);
    assert_int_equal(duda_sqlite_blob(NULL, 3).type, DUDA_SQLITE_NULL);
    assert_int_equal(duda_sqlite_blob("", 0).type, DUDA_SQLITE_BLOB);
}

TEST(limits)
{
    char text[256] = {0};
    const struct duda_sqlite_value name = duda_sqlite_text("n"), value = duda_sqlite_text_n(text, 100);
    const struct duda_sqlite_value values[] = {name, value, value, value};
    duda_sqlite_rows_t *rows;
    /* What is taken when the last value is added: three cells, 2 bytes of the name, twice 101. */
    assert_int_equal(build(values, 4, 1, 3 * SQ_CELL_BYTES + 2 + 2 * 101 + 100, &rows), 0);
    free(rows);
    assert_int_equal(build(values, 4, 1, 3 * SQ_CELL_BYTES + 2 + 2 * 101 + 99, &rows), -E2BIG);
    const struct duda_sqlite_value huge = duda_sqlite_text_n(text, SIZE_MAX);
    assert_int_equal(build(&huge, 1, 1, 1 << 30, &rows), -E2BIG); /* nothing is added to it */
}

TEST(many)
{
    enum { MANY = 5000 };
    struct duda_sqlite_value values[MANY];
    duda_sqlite_rows_t *rows;
    for (int i = 0; i < MANY; i++)
        values[i] = i % 2 ? duda_sqlite_int(i) : duda_sqlite_text("some text");
    assert_int_equal(build(values, MANY, 2, 1 << 20, &rows), 0);
    assert_int_equal(sq_rows_count(rows), MANY / 2 - 1);
    for (int i = 3; sq_rows_next(rows); i += 2) {
        assert_string_equal(sq_rows_text(rows, 0), "some text");
        assert_int_equal(sq_rows_int(rows, 1), i);
    }
    free(rows);
}

TEST(no_memory)
{
    const struct duda_sqlite_value values[] = {duda_sqlite_text("n"), duda_sqlite_text("value")};
    duda_sqlite_rows_t *rows;
    int failures = 0;
    for (long n = 0;; n++) {
        countdown = n;
        int err = build(values, 2, 1, 1000, &rows);
        countdown = -1;
        if (err == 0)
            break;
        assert_int_equal(err, -ENOMEM);
        failures++;
    }
    assert_int_equal(failures, 3); /* the cells, the bytes, the result */
    free(rows);
}

TEST_FILE(begin)
