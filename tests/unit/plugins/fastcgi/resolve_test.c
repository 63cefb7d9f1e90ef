// SPDX-License-Identifier: Apache-2.0
/*
 * What paths mean: scripts, files, folders and statuses, with a plugin of the test that opens paths below a folder, and
 * fails as the test says.
 */
#include "testing.h"

#include "folder.h"

#include "server/generation/generation.h"

#include <errno.h>

#include "plugins/fastcgi/fastcgi.h"

#include <monkey/hooks.h>

static int forced_err; /* of each path but that of the folder itself */
static unsigned opened;
static struct resolution found;
static char real_root[512];

/* As the plugin that serves files does: a folder is opened by a path with a slash. */
static int open_path(const struct mk_host *host, struct mk_str path, uint32_t flags)
{
    struct stat st;
    (void)host;
    opened++;
    if (forced_err && path.len > 1)
        return forced_err;
    int fd = open(mk_test_path(path.p), O_PATH | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return -errno;
    bool is_folder = fstat(fd, &st) == 0 && S_ISDIR(st.st_mode), has_slash = path.p[path.len - 1] == '/';
    int err = is_folder && !has_slash ? -EISDIR : flags & MK_OPEN_FOLDER && !is_folder ? -ENOENT : 0;
    if (err < 0)
        close(fd);
    return err < 0 ? err : fd;
}

static const struct mk_path_hooks path_hooks = {.open_path = open_path};
static const struct mk_plugin plugin = {.name = "opener", .paths = &path_hooks};
static struct mk_generation generation = {.plugins = {&plugin}, .n_plugins = 1};
static const struct mk_host host = {.generation = &generation};

static int make_folder(void **state)
{
    (void)state;
    snprintf(mk_test_folder, sizeof(mk_test_folder), "/tmp/mk-resolve-XXXXXX");
    if (!mkdtemp(mk_test_folder) || !realpath(mk_test_folder, real_root))
        return -1;
    static const char *const folders[] = {"app", "empty", "foo.jpg.php"}, *const files[] = {
                                                                              "index.php", "a.php",   "app/index.php",
                                                                              "style.css", "foo.jpg", "b.php5"};
    for (size_t i = 0; i < COUNT(folders); i++)
        mk_test_mkdir(folders[i]);
    for (size_t i = 0; i < COUNT(files); i++)
        mk_test_write(files[i], MK_STR("text"));
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    return mk_test_remove(mk_test_folder);
}

TEST_FILE(make_folder, remove_folder)

static struct mk_str php[] = {MK_STR_INIT(".php")};
static const struct fastcgi_conf plain = {.split = {.items = php, .n = 1}, .index = MK_STR_INIT("index.php")};

/* A front controller: TryFiles $path $path/ $path/index.php /index.php, of which `n` are used, or a status behind. */
static struct fastcgi_conf make_front(unsigned n, int status)
{
    static const struct fastcgi_try all[] = {
        {.kind = FASTCGI_TRY_FILE},
        {.kind = FASTCGI_TRY_SCRIPT, .has_path = true, .text = MK_STR_INIT("/index.php")},
        {.kind = FASTCGI_TRY_SCRIPT, .text = MK_STR_INIT("/index.php")},
    };
    struct fastcgi_conf conf = plain;
    conf.tries.n = n;
    memcpy(conf.tries.items, all, sizeof(all));
    if (status)
        conf.tries.items[conf.tries.n++] = (struct fastcgi_try){.kind = FASTCGI_TRY_STATUS, .status = status};
    return conf;
}

/* Returns "run SCRIPT INFO", "decline", "redirect" or the status. */
static const char *resolve(const struct fastcgi_conf *conf, const char *path)
{
    static char text[256];
    resolve_path(conf, &host, mk_str_c(path), &found);
    if (found.kind == RESOLVE_RUN)
        snprintf(text, sizeof(text), "run %.*s %.*s", MK_STR_ARG(found.script.name), MK_STR_ARG(found.script.info));
    else if (found.kind == RESOLVE_STATUS)
        snprintf(text, sizeof(text), "%d", found.status);
    else
        snprintf(text, sizeof(text), "%s", found.kind == RESOLVE_DECLINE ? "decline" : "redirect");
    return text;
}

struct row {
    const char *path, *expected;
};

static void check_rows(const struct fastcgi_conf *conf, const struct row *rows, size_t n)
{
    unsigned before = mk_test_descriptors();
    for (size_t i = 0; i < n; i++)
        if (strcmp(resolve(conf, rows[i].path), rows[i].expected) != 0)
            fail_msg("%s: %s", rows[i].path, resolve(conf, rows[i].path));
    assert_int_equal(mk_test_descriptors(), before);
}

TEST(scripts_alone)
{
    static const struct row rows[] = {
        {"/a.php", "run /a.php "},
        {"/a.php/x/y", "run /a.php /x/y"},
        {"/a.php/", "run /a.php /"},
        {"/", "run /index.php "},
        {"/app/", "run /app/index.php "},
        {"/app", "decline"}, /* the plugin that serves files redirects it */
        {"/empty/", "decline"},
        {"/style.css", "decline"},
        {"/none.php", "404"},
        {"/none.php/x", "404"},
        {"/foo.jpg/x.php", "404"},
        {"/foo.jpg.php", "404"}, /* a folder */
        {"/b.php5", "decline"},
        {"/a.PHP", "decline"},
        {"/.php", "decline"}, /* no name */
        {"/a.php.", "decline"},
    };
    check_rows(&plain, rows, COUNT(rows));
    resolve(&plain, "/app/");
    assert_string_equal(found.script.root, real_root);
    assert_int_equal(strncmp(found.script.file, real_root, strlen(real_root)), 0);
    assert_string_equal(found.script.file + strlen(real_root), "/app/index.php");
}

TEST(front_controller)
{
    static const struct row rows[] = {
        {"/style.css", "decline"},         {"/a.php", "run /a.php "},
        {"/a.php/x", "run /a.php /x"},     {"/app", "redirect"},
        {"/app/", "run /app/index.php "},  {"/empty", "run /index.php "},
        {"/2026/post", "run /index.php "}, {"/none.php", "run /index.php "},
        {"/", "run /index.php "},          {"/foo.jpg/x.php", "run /index.php "},
    };
    const struct fastcgi_conf conf = make_front(3, 0);
    check_rows(&conf, rows, COUNT(rows));
}

TEST(status_of_tries)
{
    static const struct row rows[] = {{"/style.css", "decline"},
                                      {"/none", "410"},
                                      {"/none.php", "410"},
                                      {"/app/", "run /app/index.php "}};
    const struct fastcgi_conf conf = make_front(2, 410);
    check_rows(&conf, rows, COUNT(rows));
}

/* Without a status at the end, a script that is missing is 404, and other paths are for other plugins. */
TEST(tries_that_end)
{
    static const struct row rows[] = {{"/none", "decline"}, {"/none.php", "404"}, {"/style.css", "decline"}};
    const struct fastcgi_conf conf = make_front(1, 0);
    check_rows(&conf, rows, COUNT(rows));
}

TEST(folders_of_tries)
{
    static const struct row rows[] = {{"/app/", "run /app/index.php "},
                                      {"/empty/", "decline"},
                                      {"/empty", "decline"},
                                      {"/none", "404"}};
    struct fastcgi_conf conf = plain;
    conf.tries = (struct fastcgi_tries){{{.kind = FASTCGI_TRY_FOLDER}, {.kind = FASTCGI_TRY_STATUS, .status = 404}}, 2};
    check_rows(&conf, rows, COUNT(rows));
}

/* Nothing is looked for here; the other server must have the script. */
TEST(remote_root)
{
    static const struct row rows[] = {{"/none.php/x", "run /none.php /x"},
                                      {"/foo.jpg/x.php", "run /foo.jpg/x.php "},
                                      {"/dir/", "run /dir/index.php "}};
    struct fastcgi_conf conf = plain;
    conf.remote_root = MK_STR("/var/www");
    opened = 0;
    check_rows(&conf, rows, COUNT(rows));
    assert_int_equal(opened, 0);
    assert_string_equal(found.script.file, "/var/www/dir/index.php");
    assert_string_equal(found.script.root, "/var/www");
    conf = make_front(3, 0);
    conf.remote_root = MK_STR("/var/www");
    assert_string_equal(resolve(&conf, "/app"), "run /index.php "); /* whether it is a folder is not known */
}

/* What is no "missing" is the result: the next entry is not tried. */
TEST(errors)
{
    static const struct {
        int err;
        const char *expected, *front;
    } rows[] = {
        {-EACCES, "403", "403"}, {-EPERM, "403", "403"},  {-EMFILE, "503", "503"},  {-ENFILE, "503", "503"},
        {-ENOMEM, "503", "503"}, {-EAGAIN, "503", "503"}, {-EIO, "404", "404"},     {-ENOENT, "404", "404"},
        {-ELOOP, "404", "404"},  {-EXDEV, "404", "404"},  {-ENOTDIR, "404", "404"},
    };
    const struct fastcgi_conf front = make_front(3, 0);
    for (size_t i = 0; i < COUNT(rows); i++) {
        forced_err = rows[i].err;
        assert_string_equal(resolve(&plain, "/a.php"), rows[i].expected);
        assert_string_equal(resolve(&front, "/a.php"), rows[i].front);
    }
    forced_err = 0;
}

TEST(long_paths)
{
    static char path[MK_CGI_PATH_BYTES + 8];
    struct fastcgi_conf conf = make_front(3, 0);
    memset(path, '/', sizeof(path));
    memcpy(path + MK_CGI_PATH_BYTES - 6, "a.php", 6);
    assert_string_equal(resolve(&plain, path), "404");
    path[MK_CGI_PATH_BYTES - strlen("index.php")] = '\0'; /* the first whose index page leaves no room for the NUL */
    assert_string_equal(resolve(&plain, path), "decline");
    path[MK_CGI_PATH_BYTES - strlen("index.php")] = '/';
    path[MK_CGI_PATH_BYTES - 1] = 'x';
    memcpy(path + MK_CGI_PATH_BYTES, ".php", 5);
    assert_string_equal(resolve(&plain, path), "404");
    assert_string_equal(resolve(&conf, path), "404");
    conf.remote_root = MK_STR("/var/www");
    memcpy(path + MK_CGI_PATH_BYTES - 6, "a.php", 6);
    assert_string_equal(resolve(&conf, path), "run /index.php "); /* with the root it is too long */
}
