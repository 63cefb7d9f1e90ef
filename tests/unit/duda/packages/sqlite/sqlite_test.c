// SPDX-License-Identifier: Apache-2.0
/* The package sqlite in a thread that is no worker: values, transactions, limits, and each error's sentence. */
#include "sqlite_fixture.h"

#include "duda/packages/sqlite/error.h"

/* ── what works ── */

TEST(values, begin, end)
{
    duda_sqlite_t *db = open_goods();
    duda_sqlite_rows_t *rows;
    struct duda_sqlite_change change;
    size_t len;
    assert_int_equal(sqlite->exec(db, &change, "INSERT INTO goods VALUES(?, ?, ?, ?)",
                                  DUDA_SQLITE_ARGS(duda_sqlite_int(7), duda_sqlite_text("it's \"new\""),
                                                   duda_sqlite_double(2.5), duda_sqlite_blob("\0\1", 2))),
                     0);
    assert_int_equal(change.rows, 1);
    assert_int_equal(change.last_id, 7);
    assert_int_equal(sqlite->exec(db, &change, "INSERT INTO goods VALUES(?, ?, ?, ?)",
                                  DUDA_SQLITE_ARGS(duda_sqlite_null(), duda_sqlite_text(""), duda_sqlite_null(),
                                                   duda_sqlite_blob("", 0))),
                     0);
    assert_int_equal(change.last_id, 8);
    assert_int_equal(sqlite->query(db, &rows, "SELECT * FROM goods ORDER BY id", DUDA_SQLITE_NO_ARGS), 0);
    assert_null(sqlite->error());
    assert_int_equal(sqlite->count(rows), 2);
    assert_int_equal(sqlite->columns(rows), 4);
    assert_true(sqlite->next(rows));
    assert_int_equal(sqlite->get_int(rows, 0), 7);
    assert_string_equal(sqlite->get_text(rows, sqlite->column(rows, "name")), "it's \"new\"");
    assert_true(sqlite->get_double(rows, 2) == 2.5);
    assert_memory_equal(sqlite->get_bytes(rows, 3, &len), "\0\1", 2);
    assert_true(sqlite->next(rows));
    assert_string_equal(sqlite->get_text(rows, 1), "");
    assert_int_equal(sqlite->type(rows, 2), DUDA_SQLITE_NULL);
    assert_int_equal(sqlite->type(rows, 3), DUDA_SQLITE_BLOB);
    assert_false(sqlite->next(rows));
    free(rows);
    assert_int_equal(sqlite->exec(db, &change, "UPDATE goods SET price = 1", DUDA_SQLITE_NO_ARGS), 0);
    assert_int_equal(change.rows, 2);
    assert_int_equal(sqlite->exec(db, &change, "CREATE TABLE other(a)", DUDA_SQLITE_NO_ARGS), 0);
    assert_int_equal(change.rows, 0);
}

TEST(settings_of_connections, begin, end)
{
    duda_sqlite_t *db = open_goods();
    assert_int_equal(access(path_of("goods.db-wal"), F_OK), 0);
    assert_int_equal(get_number(db, "PRAGMA synchronous"), 1);
    assert_int_equal(get_number(db, "PRAGMA foreign_keys"), 1);
    assert_int_equal(get_number(db, "PRAGMA trusted_schema"), 0);
    assert_int_equal(get_number(db, "PRAGMA query_only"), 1);
    assert_error(sqlite->exec(db, NULL, "SELECT load_extension('x')", DUDA_SQLITE_NO_ARGS), -EINVAL, "not authorized");
    assert_error(sqlite->exec(db, NULL, "ATTACH '/tmp/other.db' AS other", DUDA_SQLITE_NO_ARGS), -EINVAL,
                 "too many attached");
    assert_error(sqlite->exec(db, NULL, "PRAGMA writable_schema = 1", DUDA_SQLITE_NO_ARGS), -EINVAL, "PRAGMA");
    assert_error(sqlite->exec(db, NULL, "UPDATE sqlite_schema SET sql = ''", DUDA_SQLITE_NO_ARGS), -EINVAL,
                 "may not be modified");
    assert_int_equal(get_number(db, "SELECT count(*) FROM pragma_database_list"), 1);
}

/* What a PRAGMA would change for later calls, other connections, or the whole process. */
TEST(pragmas, begin, end)
{
    static const char *const refused[] = {
        "PRAGMA busy_timeout = 100000000",
        "PRAGMA Locking_Mode = EXCLUSIVE",
        "PRAGMA journal_mode = OFF",
        "PRAGMA hard_heap_limit = 1000",
        "PRAGMA main.temp_store_directory = '/tmp'",
        "PRAGMA mmap_size = 1000000000",
        "PRAGMA foreign_keys = OFF",
        "PRAGMA query_only(0)",
        "SELECT * FROM pragma_hard_heap_limit(1000)",
    };
    duda_sqlite_t *db = open_goods();
    duda_sqlite_rows_t *rows;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        assert_error(sqlite->exec(db, NULL, refused[i], DUDA_SQLITE_NO_ARGS), -EINVAL, "");
        assert_error(sqlite->query(db, &rows, refused[i], DUDA_SQLITE_NO_ARGS), -EINVAL, "");
    }
    assert_int_equal(sqlite->exec(db, NULL, "PRAGMA user_version = 7", DUDA_SQLITE_NO_ARGS), 0);
    assert_int_equal(sqlite->exec(db, NULL, "PRAGMA wal_checkpoint(TRUNCATE)", DUDA_SQLITE_NO_ARGS), 0);
    assert_int_equal(get_number(db, "PRAGMA user_version"), 7);
    assert_int_equal(get_number(db, "PRAGMA table_info(goods)"), 0);
    assert_int_equal(get_number(db, "PRAGMA foreign_keys"), 1);
}

static int add_nothing(duda_sqlite_t *db, void *given)
{
    (void)db;
    (void)given;
    return 0;
}

/* A file that is replaced while it is open, as when an operator restores a copy. */
TEST(a_file_that_is_replaced, begin, end)
{
    duda_sqlite_t *db = open_goods();
    duda_sqlite_rows_t *rows;
    char away[PATH_MAX + 64];
    snprintf(away, sizeof(away), "%s", path_of("away.db"));
    assert_int_equal(rename(path_of("goods.db"), away), 0);
    assert_error(sqlite->query(db, &rows, "SELECT 1", DUDA_SQLITE_NO_ARGS), -ESTALE, "removed or replaced");
    FILE *file = fopen(path_of("goods.db"), "w");
    assert_non_null(file);
    fclose(file);
    assert_error(sqlite->exec(db, NULL, "CREATE TABLE other(a)", DUDA_SQLITE_NO_ARGS), -ESTALE, "removed or replaced");
    assert_error(sqlite->transaction(db, add_nothing, NULL), -ESTALE, "removed or replaced");
    assert_int_equal(rename(away, path_of("goods.db")), 0);
    assert_int_equal(sqlite->transaction(db, add_nothing, NULL), 0);
    assert_int_equal(get_number(db, "SELECT 1"), 1);
}

/* More statements than a connection keeps, in turns. */
TEST(prepared_statements, begin, end)
{
    duda_sqlite_t *db = open_goods();
    char sql[64];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 70; i++) {
            snprintf(sql, sizeof(sql), "SELECT %d + count(*) FROM goods", i);
            assert_int_equal(get_number(db, sql), i);
            assert_int_equal(get_number(db, "SELECT 5"), 5);
        }
    }
    insert(db, "a");
    assert_int_equal(get_number(db, "SELECT count(*) FROM goods"), 1);
    assert_int_equal(sqlite->exec(db, NULL, "ALTER TABLE goods ADD COLUMN further DEFAULT 9", DUDA_SQLITE_NO_ARGS), 0);
    assert_int_equal(get_number(db, "SELECT further FROM goods"), 9); /* other connections see the new schema */
}

/* ── queries that write ── */

TEST(queries_that_write, begin, end)
{
    duda_sqlite_t *db = open_goods();
    assert_int_equal(get_number(db, "INSERT INTO goods(name) VALUES('a') RETURNING id"), 1);
    assert_int_equal(get_number(db, "WITH n(x) AS (SELECT 'b') INSERT INTO goods(name) SELECT x FROM n RETURNING id"),
                     2);
    assert_int_equal(get_number(db, "UPDATE goods SET name = 'c' WHERE name = 'b' RETURNING id"), 2);
    assert_int_equal(get_number(db, "SELECT count(*) FROM goods WHERE name = 'c'"), 1);
    assert_int_equal(get_number(db, "DELETE FROM goods WHERE name = 'c' RETURNING id"), 2);
    duda_sqlite_rows_t *rows;
    assert_int_equal(sqlite->query(db, &rows, "DELETE FROM goods", DUDA_SQLITE_NO_ARGS), 0);
    assert_int_equal(sqlite->columns(rows), 0);
    free(rows);
    assert_int_equal(get_number(db, "SELECT count(*) FROM goods"), 0);
}

/* Nothing was written if the result is an error, also by a statement that has written all of its rows. */
TEST(queries_that_write_and_fail, begin, end)
{
    duda_sqlite_rows_t *rows = (duda_sqlite_rows_t *)(uintptr_t)1;
    duda_sqlite_t *db =
        sqlite->open(&(struct duda_sqlite_conf){.path = "goods.db", .migrations = goods, .rows_max = 2});
    assert_non_null(db);
    assert_error(sqlite->query(db, &rows, "INSERT INTO goods(name) VALUES('a'), ('b'), ('c') RETURNING id",
                               DUDA_SQLITE_NO_ARGS),
                 -E2BIG, "goods.db: the result has more than 2 rows (rows_max): use LIMIT");
    assert_null(rows);
    assert_int_equal(get_number(db, "SELECT count(*) FROM goods"), 0);
    assert_int_equal(get_number(db, "INSERT INTO goods(name) VALUES('a') RETURNING id"), 1);
    assert_error(sqlite->query(db, &rows, "INSERT INTO goods(id, name) VALUES(7, 'b'), (1, 'c') RETURNING id",
                               DUDA_SQLITE_NO_ARGS),
                 -EEXIST, "goods.db: UNIQUE constraint failed: goods.id");
    assert_int_equal(get_number(db, "SELECT count(*) FROM goods"), 1);
    assert_int_equal(insert(db, "d"), 0); /* the connection that writes is usable */
}

/* ── transactions ── */

static int sell_nothing(duda_sqlite_t *db, void *given)
{
    int result = sell(db, given);
    return result < 0 ? result : -ENOENT;
}

static int sell_unknown(duda_sqlite_t *db, void *given)
{
    sell(db, given);
    return sqlite->exec(db, NULL, "INSERT INTO sales VALUES(77)", DUDA_SQLITE_NO_ARGS);
}

static int commit_itself(duda_sqlite_t *db, void *given)
{
    sell(db, given);
    sqlite->exec(db, NULL, "COMMIT", DUDA_SQLITE_NO_ARGS);
    assert_error(sqlite->exec(db, NULL, "INSERT INTO sales VALUES(1)", DUDA_SQLITE_NO_ARGS), -EINVAL,
                 "transactions are begun and ended by transaction()");
    return 0;
}

static int begin_another(duda_sqlite_t *db, void *given)
{
    assert_error(sqlite->transaction(db, sell, given), -EINVAL, "a transaction runs already");
    return 0;
}

/* Ignores that its query has failed, which has written its rows. */
static int insert_many(duda_sqlite_t *db, void *given)
{
    duda_sqlite_rows_t *rows;
    insert(db, "first");
    sqlite->query(db, &rows, "INSERT INTO goods(name) VALUES('a'), ('b'), ('c') RETURNING id", DUDA_SQLITE_NO_ARGS);
    *(int *)given = insert(db, "last");
    return 0;
}

static long allocations; /* until one fails */

static int sell_without_memory(duda_sqlite_t *db, void *given)
{
    duda_sqlite_rows_t *rows;
    (void)given;
    countdown = allocations;
    sqlite->query(db, &rows, "INSERT INTO goods(name) VALUES('a') RETURNING id", DUDA_SQLITE_NO_ARGS);
    countdown = -1;
    free(rows);
    return 0;
}

TEST(a_transaction_whose_query_has_too_many_rows, begin, end)
{
    int result;
    duda_sqlite_t *db =
        sqlite->open(&(struct duda_sqlite_conf){.path = "goods.db", .migrations = goods, .rows_max = 2});
    assert_non_null(db);
    assert_error(sqlite->transaction(db, insert_many, &result), -E2BIG, "goods.db: the result has more than 2 rows");
    assert_int_equal(result, -E2BIG);
    assert_int_equal(get_number(db, "SELECT count(*) FROM goods"), 0);
}

/* The same without memory for the rows: each of the three blocks that they take may fail. */
TEST(a_transaction_without_memory_for_rows, begin, end)
{
    duda_sqlite_t *db = open_goods();
    for (allocations = 0; allocations < 3; allocations++) {
        assert_error(sqlite->transaction(db, sell_without_memory, NULL), -ENOMEM, "goods.db: no memory for the result");
        assert_int_equal(get_number(db, "SELECT count(*) FROM goods"), 0);
    }
    assert_int_equal(sqlite->transaction(db, sell_without_memory, NULL), 0);
    assert_int_equal(get_number(db, "SELECT count(*) FROM goods"), 1);
}

TEST(transactions, begin, end)
{
    duda_sqlite_t *db = open_goods();
    int64_t id = 0;
    assert_int_equal(sqlite->transaction(db, sell_nothing, &id), -ENOENT);
    assert_string_equal(sqlite->error(), "the function of the transaction has returned an error");
    assert_string_equal(logged, "");
    assert_int_equal(get_number(db, "SELECT count(*) FROM goods"), 0);
    assert_error(sqlite->transaction(db, sell_unknown, &id), -ERANGE, "goods.db: FOREIGN KEY constraint failed");
    assert_int_equal(get_number(db, "SELECT count(*) FROM goods"), 0);
    assert_int_equal(sqlite->transaction(db, sell, &id), 3);
    assert_null(sqlite->error());
    assert_int_equal(get_number(db, "SELECT good FROM sales"), id);
    assert_int_equal(sqlite->transaction(db, begin_another, &id), 0);
    assert_error(sqlite->exec(db, NULL, "BEGIN", DUDA_SQLITE_NO_ARGS), -EINVAL, "by transaction(), not by SQL");
    assert_int_equal(insert(db, "b"), 0);
    assert_int_equal(get_number(db, "SELECT count(*) FROM goods"), 2);
}

TEST(a_transaction_that_ends_itself, begin, end)
{
    duda_sqlite_t *db = open_goods();
    int64_t id = 0;
    assert_error(sqlite->transaction(db, commit_itself, &id), -EINVAL, "transactions are begun and ended by");
    assert_int_equal(insert(db, "b"), 0);
}

/* ── calls that fail ── */

TEST(statements, begin, end)
{
    duda_sqlite_t *db = open_goods();
    duda_sqlite_rows_t *rows;
    assert_error(sqlite->exec(db, NULL, "INSERT goods", DUDA_SQLITE_NO_ARGS), -EINVAL, "goods.db: near \"goods\"");
    assert_error(sqlite->exec(db, NULL, "", DUDA_SQLITE_NO_ARGS), -EINVAL, "goods.db: the SQL must be one statement");
    assert_error(sqlite->exec(db, NULL, "SELECT 1; SELECT 2", DUDA_SQLITE_NO_ARGS), -EINVAL,
                 "goods.db: the SQL must be one statement");
    assert_int_equal(sqlite->exec(db, NULL, "SELECT 1; \n", DUDA_SQLITE_NO_ARGS), 0);
    assert_error(sqlite->exec(db, NULL, "SELECT ?", DUDA_SQLITE_NO_ARGS), -EINVAL,
                 "goods.db: the statement has 1 parameters, and got 0 values");
    assert_error(sqlite->query(db, &rows, "BEGIN IMMEDIATE", DUDA_SQLITE_NO_ARGS), -EINVAL,
                 "goods.db: cannot start a transaction within a transaction");
    assert_error(sqlite->query(db, NULL, "SELECT 1", DUDA_SQLITE_NO_ARGS), -EINVAL, "an argument is NULL");
    assert_error(sqlite->query(NULL, &rows, "SELECT 1", DUDA_SQLITE_NO_ARGS), -EINVAL, "an argument is NULL");
    assert_error(sqlite->exec(db, NULL, NULL, DUDA_SQLITE_NO_ARGS), -EINVAL, "an argument is NULL");
    assert_error(sqlite->exec(db, NULL, "SELECT ?", NULL, 1), -EINVAL, "an argument is NULL");
    assert_error(sqlite->transaction(db, NULL, NULL), -EINVAL, "an argument is NULL");
    struct duda_sqlite_value wrong = {.type = 99};
    assert_error(sqlite->exec(db, NULL, "SELECT ?", &wrong, 1), -EINVAL, "goods.db: ");
}

TEST(the_log, begin, end)
{
    duda_sqlite_t *db = open_goods();
    assert_int_equal(sqlite->exec(db, NULL, "SELECT a", DUDA_SQLITE_NO_ARGS), -EINVAL);
    assert_string_equal(logged, "sqlite->exec(): goods.db: no such column: a (SELECT a), in a place");
    logged[0] = '\0';
    assert_error(sqlite->exec(db, NULL, "SELECT a", DUDA_SQLITE_NO_ARGS), -EINVAL, "goods.db: no such column: a");
    assert_string_equal(logged, ""); /* one line in ten seconds */
    for (int i = 1; i < SQ_LOG_ROWS + 1; i++) {
        char other[] = {'S', 'E', 'L', 'E', 'C', 'T', ' ', (char)('a' + i), '\0'};
        logged[0] = '\0';
        assert_int_equal(sqlite->exec(db, NULL, other, DUDA_SQLITE_NO_ARGS), -EINVAL);
        assert_true(i < SQ_LOG_ROWS ? (bool)strstr(logged, other) : !logged[0]);
    }
    end(state);
    begin(state);
    char sql[400];
    snprintf(sql, sizeof(sql), "SELECT a, %0300d", 7);
    assert_int_equal(sqlite->exec(open_goods(), NULL, sql, DUDA_SQLITE_NO_ARGS), -EINVAL);
    snprintf(sql, sizeof(sql), "sqlite->exec(): goods.db: no such column: a (SELECT a, %0150d...), in a place", 0);
    assert_string_equal(logged, sql);
}

static int count(struct sq_log *log, const char *sql, int err, uint64_t now_ms)
{
    unsigned missing = 0;
    return sq_log_is_due(log, sql, err, now_ms, &missing) ? (int)missing : -1;
}

TEST(one_line_in_ten_seconds)
{
    struct sq_log log = {.lock = PTHREAD_MUTEX_INITIALIZER};
    assert_int_equal(count(&log, "SELECT a", -EINVAL, 1), 0);
    assert_int_equal(count(&log, "SELECT a", -EIO, 1), 0);
    assert_int_equal(count(&log, NULL, -EIO, 1), 0);
    assert_int_equal(count(&log, "SELECT a", -EINVAL, SQ_LOG_INTERVAL_MS), -1);
    assert_int_equal(count(&log, "SELECT a", -EINVAL, SQ_LOG_INTERVAL_MS), -1);
    assert_int_equal(count(&log, "SELECT a", -EINVAL, SQ_LOG_INTERVAL_MS + 1), 2);
    assert_int_equal(count(&log, "SELECT a", -EIO, SQ_LOG_INTERVAL_MS + 1), 0);
}

TEST(constraints, begin, end)
{
    duda_sqlite_t *db = open_goods();
    assert_int_equal(insert(db, "a"), 0);
    logged[0] = '\0';
    assert_error(insert(db, "a"), -EEXIST, "goods.db: UNIQUE constraint failed: goods.name");
    assert_error(sqlite->exec(db, NULL, "INSERT INTO goods(id, name) VALUES(1, 'b')", DUDA_SQLITE_NO_ARGS), -EEXIST,
                 "goods.db: UNIQUE constraint failed: goods.id");
    assert_error(insert(db, NULL), -ERANGE, "goods.db: NOT NULL constraint failed: goods.name");
    assert_error(sqlite->exec(db, NULL, "INSERT INTO sales VALUES(9)", DUDA_SQLITE_NO_ARGS), -ERANGE,
                 "goods.db: FOREIGN KEY constraint failed");
    assert_string_equal(logged, ""); /* the fault of clients */
}

TEST(limits, begin, end)
{
    duda_sqlite_t *db = sqlite->open(
        &(struct duda_sqlite_conf){.path = "goods.db", .migrations = goods, .rows_max = 3, .bytes_max = 5000});
    duda_sqlite_rows_t *rows;
    static const char sql[] = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n LIMIT ?";
    assert_int_equal(sqlite->query(db, &rows, sql, DUDA_SQLITE_ARGS(duda_sqlite_int(3))), 0);
    assert_int_equal(sqlite->count(rows), 3);
    free(rows);
    assert_error(sqlite->query(db, &rows, sql, DUDA_SQLITE_ARGS(duda_sqlite_int(4))), -E2BIG,
                 "goods.db: the result has more than 3 rows (rows_max): use LIMIT");
    assert_int_equal(sqlite->query(db, &rows, "SELECT zeroblob(4800)", DUDA_SQLITE_NO_ARGS), 0);
    free(rows);
    assert_error(sqlite->query(db, &rows, "SELECT zeroblob(3000), zeroblob(3000)", DUDA_SQLITE_NO_ARGS), -E2BIG,
                 "goods.db: the result has more than 5000 bytes (bytes_max): use LIMIT");
    assert_error(sqlite->query(db, &rows, "SELECT zeroblob(6000)", DUDA_SQLITE_NO_ARGS), -E2BIG, "goods.db: string or");
    assert_null(rows);
}

TEST(time, begin, end)
{
    static const char forever[] =
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n";
    duda_sqlite_t *db =
        sqlite->open(&(struct duda_sqlite_conf){.path = "goods.db", .migrations = goods, .query_ms = 400});
    duda_sqlite_rows_t *rows;
    assert_error(sqlite->query(db, &rows, forever, DUDA_SQLITE_NO_ARGS), -ETIMEDOUT,
                 "goods.db: the call has taken 400 ms (query_ms), and was ended");
    assert_int_equal(get_number(db, "SELECT 1"), 1);
    stopping = true;
    assert_error(sqlite->query(db, &rows, forever, DUDA_SQLITE_NO_ARGS), -ECANCELED, "goods.db: the call was given up");
    stopping = false;
    assert_int_equal(get_number(db, "SELECT 1"), 1);
}

static int overstay(duda_sqlite_t *db, void *given)
{
    duda_sqlite_rows_t *rows;
    sell(db, given);
    return sqlite->query(db, &rows,
                         "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n",
                         DUDA_SQLITE_NO_ARGS) == -ETIMEDOUT
               ? 0 /* the time of the transaction is over, too */
               : -EIO;
}

TEST(the_time_of_a_transaction, begin, end)
{
    duda_sqlite_t *db =
        sqlite->open(&(struct duda_sqlite_conf){.path = "goods.db", .migrations = goods, .query_ms = 400});
    int64_t id;
    assert_error(sqlite->transaction(db, overstay, &id), -ETIMEDOUT, "goods.db: the call has taken 400 ms (query_ms)");
    assert_int_equal(get_number(db, "SELECT count(*) FROM goods"), 0);
}

TEST(locked, begin, end)
{
    duda_sqlite_t *db =
        sqlite->open(&(struct duda_sqlite_conf){.path = "goods.db", .migrations = goods, .busy_ms = 30});
    sqlite3 *other;
    int64_t id;
    static const char reason[] =
        "goods.db: the database is locked: another connection or process has held the lock for 30 ms";
    assert_int_equal(sqlite3_open(path_of("goods.db"), &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    assert_error(insert(db, "a"), -EBUSY, reason);
    assert_error(sqlite->transaction(db, sell, &id), -EBUSY, reason);
    assert_int_equal(get_number(db, "SELECT count(*) FROM goods"), 0); /* readers do not wait */
    const char *const next[] = {goods[0], "CREATE TABLE further(a)", NULL};
    refuse(&(struct duda_sqlite_conf){.path = "goods.db", .migrations = next, .busy_ms = 30}, -EBUSY, reason);
    assert_int_equal(sqlite3_exec(other, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(insert(db, "a"), 0);
    sqlite3_close(other);
}

TEST(full, begin, end)
{
    duda_sqlite_t *db =
        sqlite->open(&(struct duda_sqlite_conf){.path = "goods.db", .migrations = goods, .file_bytes_max = 100000});
    static const char sql[] = "INSERT INTO goods(name, picture) VALUES(?, zeroblob(60000))";
    assert_int_equal(sqlite->exec(db, NULL, sql, DUDA_SQLITE_ARGS(duda_sqlite_text("a"))), 0);
    assert_error(sqlite->exec(db, NULL, sql, DUDA_SQLITE_ARGS(duda_sqlite_text("b"))), -ENOSPC,
                 "goods.db: the disk is full, or the file has the 100000 bytes of file_bytes_max");
    assert_int_equal(get_number(db, "SELECT count(*) FROM goods"), 1);
}

static int fill(duda_sqlite_t *db, void *given)
{
    static const char sql[] = "INSERT INTO goods(name, picture) VALUES(?, zeroblob(60000))";
    (void)given;
    assert_int_equal(insert(db, "c"), 0);
    assert_int_equal(sqlite->exec(db, NULL, sql, DUDA_SQLITE_ARGS(duda_sqlite_text("b"))), -ENOSPC);
    insert(db, "d"); /* must not be written on its own */
    return 0;
}

TEST(full_in_a_transaction, begin, end)
{
    duda_sqlite_t *db =
        sqlite->open(&(struct duda_sqlite_conf){.path = "goods.db", .migrations = goods, .file_bytes_max = 50000});
    int err = sqlite->transaction(db, fill, NULL);
    assert_true(err == -ENOSPC || err == 0);
    assert_int_equal(get_number(db, "SELECT count(*) FROM goods"), err ? 0 : 2);
}

TEST(disk_errors, begin, end)
{
    duda_sqlite_t *db = open_goods();
    struct rlimit own;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &own), 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){.rlim_cur = 20000, .rlim_max = own.rlim_max}), 0);
    static const char sql[] = "INSERT INTO goods(name, picture) VALUES('a', zeroblob(60000))";
    int err = sqlite->exec(db, NULL, sql, DUDA_SQLITE_NO_ARGS);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &own), 0);
    assert_error(err, -EIO, "goods.db: disk I/O error");
    assert_int_equal(sqlite->exec(db, NULL, sql, DUDA_SQLITE_NO_ARGS), 0);
}

/* Returns the result of a query, or of open(). */
static int use_database(void)
{
    duda_sqlite_rows_t *rows = NULL;
    duda_sqlite_t *db = sqlite->open(&(struct duda_sqlite_conf){.path = "goods.db", .migrations = goods});
    int err = db ? sqlite->query(db, &rows, "SELECT 'a text'", DUDA_SQLITE_NO_ARGS) : -errno;
    free(rows);
    return err;
}

TEST(no_memory, begin, end)
{
    int failures = 0, err;
    for (long n = 0;; n++) {
        countdown = n;
        err = use_database();
        countdown = -1;
        if (err != -ENOMEM)
            break;
        assert_non_null(strstr(sqlite->error(), "no memory"));
        failures++;
    }
    assert_int_equal(err, 0);
    assert_int_equal(failures, 5); /* the path, the database, the cells, the bytes, the result */
}

TEST(the_original_without_memory, begin, end)
{
    sqlite_handle_t *handle;
    for (int n = 0; n < 2; n++) {
        countdown = n;
        assert_null(sqlite->old_open("old.db"));
        countdown = -1;
        assert_non_null(strstr(logged, "sqlite->open(): old.db: out of memory"));
    }
    sqlite_db_t *db = sqlite->old_open("old.db");
    countdown = 0;
    assert_int_equal(sqlite->old_dump(db, "SELECT 1", &handle), -1);
    countdown = -1;
    assert_null(handle);
    assert_int_equal(sqlite->old_dump(db, "SELECT 1", &handle), 0); /* is freed with the service */
    assert_int_equal(sqlite->old_step(NULL), -1);
    assert_int_equal(sqlite->old_done(NULL), 0);
    assert_int_equal(sqlite->old_close(NULL), 0);
    assert_int_equal(sqlite->old_exec(NULL, NULL, "SELECT 1", NULL, NULL), -1);
    assert_int_equal(sqlite->old_dump(NULL, "SELECT 1", &handle), -1);
    assert_null(sqlite->old_open(NULL));
}
