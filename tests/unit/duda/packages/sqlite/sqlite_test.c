// SPDX-License-Identifier: Apache-2.0
/* The package sqlite in a thread that is no worker: values, transactions, versions, limits, and each error's sentence.
 */
#include <sqlite3.h>

#include <duda/data.h>
#include <duda/dthread.h>
#include <duda/mem.h>
#include <duda/msg.h>
#include <duda/packages/sqlite/sqlite.h>
#include <duda/task.h>

#include "testing.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* ── what the package calls ── */

static char folder[PATH_MAX], logged[1000];
static void *service;
static bool stopping;

static long countdown = -1; /* of allocations until one fails */

static void *alloc(size_t size)
{
    return countdown >= 0 && countdown-- == 0 ? NULL : malloc(size);
}

static void *alloc_zeroed(size_t size)
{
    void *p = alloc(size);
    return p ? memset(p, 0, size) : NULL;
}

static void *re_alloc(void *ptr, size_t size)
{
    return countdown >= 0 && countdown-- == 0 ? NULL : realloc(ptr, size);
}

static void log_line(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(logged, sizeof(logged), format, args);
    va_end(args);
}

static char *get_folder(void)
{
    return folder;
}

static void *get_service(const struct duda_package *package)
{
    (void)package;
    return service;
}

static struct duda_package_worker *no_worker(const struct duda_package *package)
{
    (void)package;
    return NULL;
}

static bool describe_call(const void *address, char *to, size_t size)
{
    snprintf(to, size, "a place");
    return !address; /* the call is on the stack */
}

static struct duda_task_line *make_line(void)
{
    return malloc(1);
}

static void free_line(struct duda_task_line *line)
{
    free(line);
}

static bool is_stopping(void)
{
    return stopping;
}

static const struct duda_api_mem heap = {.alloc = alloc, .alloc_z = alloc_zeroed, .realloc = re_alloc, .free = free};
static const struct duda_api_msg lines = {.info = log_line, .warn = log_line, .err = log_line, .bug = log_line};
static const struct duda_api_data files = {.get_path = get_folder};
static const struct duda_api_package loader = {.service_state = get_service,
                                               .worker = no_worker,
                                               .describe_call = describe_call};
static const struct duda_api_task tasks = {.line = make_line, .line_free = free_line, .stopping = is_stopping};

static int begin(void **state)
{
    char template[] = "/tmp/mk_sqlite_XXXXXX";
    (void)state;
    mem = &heap;
    msg = &lines;
    data = &files;
    task = &tasks;
    duda_package_loader = &loader;
    struct duda_package *package = duda_package_main();
    sqlite = package->api;
    service = package->service_start();
    stopping = false;
    logged[0] = '\0';
    snprintf(folder, sizeof(folder), "%s/", mkdtemp(template));
    return service ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    duda_package_main()->service_stop(service);
    DIR *dir = opendir(folder);
    for (struct dirent *entry; (entry = readdir(dir));)
        unlinkat(dirfd(dir), entry->d_name, 0);
    closedir(dir);
    return rmdir(folder);
}

/* ── helpers ── */

static const char *path_of(const char *name)
{
    static char path[PATH_MAX + 64];
    snprintf(path, sizeof(path), "%s%s", folder, name);
    return path;
}

static const char *const goods[] = {
    "CREATE TABLE goods(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, price REAL, picture BLOB);"
    "CREATE TABLE sales(good INTEGER NOT NULL REFERENCES goods)",
    NULL,
};

static duda_sqlite_t *open_goods(void)
{
    duda_sqlite_t *db = sqlite->open(&(struct duda_sqlite_conf){.path = "goods.db", .migrations = goods});
    assert_non_null(db);
    return db;
}

static void assert_error(int result, int err, const char *sentence)
{
    const char *error = sqlite->error();
    if (result != err || !error || !strstr(error, sentence))
        fail_msg("%d instead of %d: %s", result, err, error ? error : "no error");
}

static int64_t get_number(duda_sqlite_t *db, const char *sql)
{
    duda_sqlite_rows_t *rows;
    assert_int_equal(sqlite->query(db, &rows, sql, DUDA_SQLITE_NO_ARGS), 0);
    assert_true(sqlite->next(rows));
    int64_t number = sqlite->get_int(rows, 0);
    free(rows);
    return number;
}

static int insert(duda_sqlite_t *db, const char *name)
{
    return sqlite->exec(db, NULL, "INSERT INTO goods(name) VALUES(?)", DUDA_SQLITE_ARGS(duda_sqlite_text(name)));
}

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

static int sell(duda_sqlite_t *db, void *given)
{
    int64_t *id = given;
    duda_sqlite_rows_t *rows;
    const char *sql = "INSERT INTO goods(name) VALUES('a') RETURNING id";
    if (sqlite->query(db, &rows, sql, DUDA_SQLITE_NO_ARGS) < 0)
        return -EIO;
    sqlite->next(rows);
    *id = sqlite->get_int(rows, 0);
    free(rows);
    if (sqlite->exec(db, NULL, "INSERT INTO sales VALUES(?)", DUDA_SQLITE_ARGS(duda_sqlite_int(*id))) < 0)
        return -EIO;
    return 3;
}

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

/* ── versions ── */

TEST(migrations_that_were_edited, begin, end)
{
    static const char *const first[] = {"CREATE TABLE a (n INTEGER)", "INSERT INTO a VALUES (1)", NULL};
    static const char *const spaced[] = {" CREATE TABLE  a\n(n INTEGER)", "INSERT INTO a VALUES (1)\n ", NULL};
    static const char *const edited[] = {"CREATE TABLE a (n INTEGER)", "INSERT INTO a VALUES (2)",
                                         "INSERT INTO a VALUES (3)", NULL};
    struct duda_sqlite_conf conf = {.path = "a.db", .migrations = first};
    duda_sqlite_t *db = sqlite->open(&conf);
    assert_non_null(db);
    conf.migrations = spaced;
    assert_non_null(sqlite->open(&conf));
    conf.migrations = edited;
    assert_null(sqlite->open(&conf));
    assert_error(-errno, -EINVAL, "a.db: migration 2 (INSERT INTO a VALUES (2)) has changed since it was done");
    assert_int_equal(get_number(db, "SELECT count(*) FROM a"), 1);
    /* A file of a version that kept no records: they are those of the next open(). */
    assert_int_equal(sqlite->exec(db, NULL, "DROP TABLE duda_migrations", DUDA_SQLITE_NO_ARGS), 0);
    conf.migrations = first;
    conf.read_only = true;
    assert_non_null(sqlite->open(&conf));
    conf.read_only = false;
    assert_non_null(sqlite->open(&conf));
    assert_int_equal(get_number(db, "SELECT count(*) FROM duda_migrations"), 2);
    conf.migrations = edited;
    assert_null(sqlite->open(&conf));
}

TEST(migrations, begin, end)
{
    const char *const first[] = {"CREATE TABLE a(x); INSERT INTO a VALUES(1)", NULL};
    const char *const more[] = {first[0], "INSERT INTO a VALUES(2)", "UPDATE a SET x = x * 10", NULL};
    const char *const wrong[] = {first[0], more[1], more[2], "INSERT INTO a VALUES(4); INSERT INTO b VALUES(1)", NULL};
    const char *const ends[] = {first[0], more[1], more[2], "COMMIT", NULL};
    assert_non_null(sqlite->open(&(struct duda_sqlite_conf){.path = "a.db", .migrations = first}));
    duda_sqlite_t *db = sqlite->open(&(struct duda_sqlite_conf){.path = "a.db", .migrations = more});
    assert_non_null(db);
    assert_int_equal(get_number(db, "SELECT sum(x) FROM a"), 30);
    assert_int_equal(get_number(db, "PRAGMA user_version"), 3);

    assert_null(sqlite->open(&(struct duda_sqlite_conf){.path = "a.db", .migrations = first}));
    assert_error(-errno, -ENOTSUP,
                 "a.db: the database has the version 3, and this service knows 1: it was changed by a newer version");
    assert_null(sqlite->open(&(struct duda_sqlite_conf){.path = "a.db", .migrations = wrong}));
    assert_error(-errno, -EINVAL,
                 "a.db: migration 4 (INSERT INTO a VALUES(4); INSERT INTO b VALUES(1)): no such table: b");
    assert_null(sqlite->open(&(struct duda_sqlite_conf){.path = "a.db", .migrations = ends}));
    assert_error(-errno, -EINVAL, "a.db: migration 4 ends the transaction");
    assert_null(sqlite->open(&(struct duda_sqlite_conf){.path = "a.db", .migrations = ends, .read_only = true}));
    assert_error(-errno, -EROFS, "a.db: the database has the version 3 instead of 4, and is read_only");
    assert_int_equal(get_number(db, "SELECT sum(x) FROM a"), 30);
    assert_int_equal(get_number(db, "PRAGMA user_version"), 3);
}

/* ── files that cannot be used ── */

static void refuse(const struct duda_sqlite_conf *conf, int err, const char *sentence)
{
    errno = 0;
    assert_null(sqlite->open(conf));
    assert_error(-errno, err, sentence);
    assert_true(strstr(logged, "sqlite->open(): ") && strstr(logged, sentence));
}

static void write_file(const char *name, off_t at, const void *bytes, size_t len)
{
    int fd = open(path_of(name), O_WRONLY | O_CREAT, 0600);
    assert_int_equal(pwrite(fd, bytes, len, at), len);
    close(fd);
}

TEST(settings, begin, end)
{
    static const char reason[] = "the path is that of no file";
    refuse(&(struct duda_sqlite_conf){.path = NULL}, -EINVAL, reason);
    refuse(&(struct duda_sqlite_conf){.path = ""}, -EINVAL, reason);
    refuse(&(struct duda_sqlite_conf){.path = ":memory:"}, -EINVAL, reason);
    refuse(&(struct duda_sqlite_conf){.path = "/"}, -EINVAL, reason);
    refuse(&(struct duda_sqlite_conf){.path = "a", .readers = 17}, -EINVAL, "a: readers are 16 at most");
    refuse(&(struct duda_sqlite_conf){.path = "a", .bytes_max = 1000000001}, -EINVAL, "and bytes_max 1000000000");
    refuse(NULL, -EINVAL, "the settings are NULL");
    void *own = service;
    service = NULL;
    refuse(&(struct duda_sqlite_conf){.path = "a"}, -EPERM, "it works only in duda_main()");
    service = own;
}

TEST(missing, begin, end)
{
    refuse(&(struct duda_sqlite_conf){.path = "none.db", .read_only = true}, -ENOENT,
           "none.db: unable to open database file: No such file or directory");
    refuse(&(struct duda_sqlite_conf){.path = "none/a.db"}, -ENOENT, "a.db: unable to make the database in ");
}

TEST(corrupt, begin, end)
{
    char junk[8192];
    memset(junk, 'x', sizeof(junk));
    write_file("text.db", 0, junk, sizeof(junk));
    refuse(&(struct duda_sqlite_conf){.path = "text.db"}, -EUCLEAN, "text.db: file is not a database");

    open_goods();
    end(state);
    begin(state);
    duda_sqlite_t *db = open_goods();
    for (int i = 0; i < 200; i++) {
        char name[128];
        snprintf(name, sizeof(name), "%0100d", i);
        assert_int_equal(insert(db, name), 0);
    }
    duda_package_main()->service_stop(service); /* which writes all to the file */
    service = duda_package_main()->service_start();
    write_file("goods.db", 4096, junk, sizeof(junk)); /* pages of tables */
    db = sqlite->open(&(struct duda_sqlite_conf){.path = "goods.db", .migrations = goods});
    duda_sqlite_rows_t *rows;
    assert_non_null(db); /* the first page is as it was */
    assert_error(sqlite->query(db, &rows, "SELECT * FROM goods", DUDA_SQLITE_NO_ARGS), -EUCLEAN,
                 "goods.db: database disk image is malformed");
    assert_null(rows);
    assert_error(insert(db, "a"), -EUCLEAN, "goods.db: database disk image is malformed");
}

/* A file whose schema only a later SQLite reads, and one that it may only read. */
TEST(a_newer_format, begin, end)
{
    static const unsigned char schema_format[] = {0, 0, 0, 9}, version = 9;
    open_goods();
    duda_package_main()->service_stop(service);
    service = duda_package_main()->service_start();
    write_file("goods.db", 44, schema_format, 4);
    refuse(&(struct duda_sqlite_conf){.path = "goods.db", .migrations = goods}, -EINVAL,
           "goods.db: unsupported file format");
    write_file("goods.db", 19, &version, 1);
    refuse(&(struct duda_sqlite_conf){.path = "goods.db", .migrations = goods}, -EUCLEAN,
           "goods.db: file is not a database");
}

/* Files that the server's user may not write; root may, and is another user for a moment. */
TEST(read_only_files, begin, end)
{
    open_goods();
    duda_package_main()->service_stop(service);
    service = duda_package_main()->service_start();
    assert_int_equal(chmod(path_of("goods.db"), 0444), 0);
    assert_int_equal(chmod(folder, 0777), 0);
    uid_t own = geteuid();
    assert_true(own != 0 || seteuid(65534) == 0);
    refuse(&(struct duda_sqlite_conf){.path = "goods.db", .migrations = goods}, -EROFS,
           "goods.db: the file or its folder is read-only for the server's user");
    assert_true(own != 0 || seteuid(0) == 0);
    assert_int_equal(chmod(path_of("goods.db"), 0666), 0);
    assert_int_equal(chmod(folder, 0555), 0);
    assert_true(own != 0 || seteuid(65534) == 0);
    refuse(&(struct duda_sqlite_conf){.path = "goods.db", .migrations = goods}, -EROFS,
           "goods.db: the file or its folder is read-only for the server's user");
    refuse(&(struct duda_sqlite_conf){.path = "other.db"}, -EACCES, "other.db: unable to make the database in ");
    assert_true(own != 0 || seteuid(0) == 0);
    prctl(PR_SET_DUMPABLE, 1); /* LeakSanitizer traces the process */
    assert_int_equal(chmod(folder, 0755), 0);
    duda_sqlite_rows_t *rows;
    duda_sqlite_t *db =
        sqlite->open(&(struct duda_sqlite_conf){.path = "goods.db", .migrations = goods, .read_only = true});
    assert_non_null(db);
    assert_int_equal(get_number(db, "SELECT count(*) FROM goods"), 0);
    assert_error(insert(db, "a"), -EROFS, "goods.db: the database was opened with read_only");
    assert_error(sqlite->transaction(db, sell, NULL), -EROFS, "goods.db: the database was opened with read_only");
    assert_error(sqlite->query(db, &rows, "DELETE FROM goods", DUDA_SQLITE_NO_ARGS), -EROFS,
                 "goods.db: the database was opened with read_only");
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
    assert_error(sqlite->exec(db, NULL, "SELECT b", DUDA_SQLITE_NO_ARGS), -EINVAL, "goods.db: no such column: b");
    assert_string_equal(logged, ""); /* one line in ten seconds */
    end(state);
    begin(state);
    char sql[400];
    snprintf(sql, sizeof(sql), "SELECT a, %0300d", 7);
    assert_int_equal(sqlite->exec(open_goods(), NULL, sql, DUDA_SQLITE_NO_ARGS), -EINVAL);
    snprintf(sql, sizeof(sql), "sqlite->exec(): goods.db: no such column: a (SELECT a, %0150d...), in a place", 0);
    assert_string_equal(logged, sql);
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
