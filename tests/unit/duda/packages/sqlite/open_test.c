// SPDX-License-Identifier: Apache-2.0
/* The package sqlite: versions of databases, and files that cannot be used. */
#include "sqlite_fixture.h"

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

static void write_file(const char *name, off_t at, const void *bytes, size_t len)
{
    int fd = open(path_of(name), O_WRONLY | O_CREAT, 0600);
    assert_int_equal(pwrite(fd, bytes, len, at), len);
    close(fd);
}

static char *get_no_folder(void)
{
    return NULL;
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

TEST(a_relative_path_without_a_folder, begin, end)
{
    static const struct duda_api_data without_folder = {.get_path = get_no_folder};
    data = &without_folder;
    refuse(&(struct duda_sqlite_conf){.path = "a.db"}, -EINVAL,
           "a.db: `path` is relative, but the section [WEB_SERVICE] does not set DataDir (dudac sets it if the folder "
           "`data` exists)");
    assert_int_equal(access("a.db", F_OK), -1);
    assert_non_null(sqlite->open(&(struct duda_sqlite_conf){.path = path_of("a.db")}));
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
