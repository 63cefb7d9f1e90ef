// SPDX-License-Identifier: Apache-2.0
/* Files: includes, variables, limits, and what cannot be read. Each case is a small directory. */
#include "folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "conf/internal.h"
#include "conf/sample.h"

static char root[64];

static void set_up(void)
{
    snprintf(root, sizeof(root), "/tmp/mk-conf-XXXXXX");
    assert_non_null(mkdtemp(root));
    assert_int_equal(chdir(root), 0);
    assert_int_equal(mkdir("d", 0755), 0);
    assert_int_equal(mkdir("d/sub", 0755), 0);
    assert_int_equal(mkfifo("fifo", 0644), 0);
    assert_int_equal(symlink("loop", "loop"), 0);
}

static void tear_down(void)
{
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(mk_test_remove(root), 0);
}

static void write_file(const char *name, struct mk_str text)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text.p, text.len), text.len);
    close(fd);
}

struct source_case {
    const char *files[10]; /* name, text, name, text ...; the first is read */
    int result;
    const char *deny; /* the words of the key, with where each came from */
    const char *problems;
};

#define DENY(words) "[SERVER]\n Deny " words "\n"

static const struct source_case cases[] = {
    {{"a", DENY("x")}, 0, "x@a:2", ""},
    {{"a", ""}, 0, "", ""},
    {{"d/a", "@INCLUDE b\n" DENY("x"), "d/b", DENY("y")}, 0, "y@d/b:2 x@d/a:3", ""},
    {{"a", "[SERVER]\n Deny x\n@INCLUDE d/b\n Deny z\n", "d/b", "[SERVER]\n  Deny y\n"}, 0, "x@a:2 y@d/b:2 z@a:4", ""},
    {{"d/a", "@INCLUDE ../b\n", "b", DENY("y")}, 0, "y@d/../b:2", ""},
    {{"a", "@INCLUDE d/*.conf\n", "d/z.conf", DENY("z"), "d/B.conf", DENY("b"), "d/.h.conf", "?", "d/a.txt", "?"},
     0,
     "b@d/B.conf:2 z@d/z.conf:2",
     ""},
    {{"a", "@INCLUDE d/*\n@INCLUDE nowhere/*\n@INCLUDE \"d/b [cd]\"\n", "d/b c", DENY("z")},
     0,
     "z@d/b c:2 z@d/b c:2",
     ""},
    {{"a", "@SET v=p q\n" DENY("${v} \"${v}\" ${w:-r}"), "-", ""}, 0, "p@a:3 q@a:3 p q@a:3 r@a:3", ""},
    {{"a", "@SET v=d\n@SET v=${v}/b\n@INCLUDE ${v}\n" DENY("${v} ${w}"), "d/b", "@SET w=2\n"}, 0, "d/b@a:5 2@a:5", ""},
    {{"a", "@INCLUDE d/b\n", "d/b", "[SERVER]\n Workers x\n", "-", ""},
     -EINVAL,
     "",
     "d/b:2:10: error: \"Workers\" wants a number from 0 to 64, not \"x\"\n Workers x\n         ^\nincluded from "
     "a:1\n"},
    {{"a", "\n@INCLUDE b\n", "b", "@INCLUDE d/c # x\n", "d/c", " K v\n"},
     -EINVAL,
     "",
     "d/c:1:2: error: a key needs a [SECTION] above it\n K v\n ^\nincluded from b:1\nincluded from a:2\n"},
    {{"a", "@INCLUDE b\n", "b", "@INCLUDE a\n"},
     -EINVAL,
     "",
     "b:1:10: error: \"a\" includes itself\n@INCLUDE a\n         ^\nincluded from a:1\n"},
    {{"a", "@INCLUDE nowhere.conf\n" DENY("x")},
     -EINVAL,
     "x@a:3",
     "a:1:10: error: cannot read \"nowhere.conf\": No such file or directory\n@INCLUDE nowhere.conf\n         ^\n"},
    {{"a", "@INCLUDE d\n@INCLUDE fifo\n@INCLUDE \"\"\n"},
     -EINVAL,
     "",
     "a:1:10: error: cannot read \"d\": Is a directory\n@INCLUDE d\n         ^\n"
     "a:2:10: error: cannot read \"fifo\": it is not a regular file\n@INCLUDE fifo\n         ^\n"
     "a:3:10: error: @INCLUDE wants the name of a file\n@INCLUDE \"\"\n         ^\n"},
    {{"a", "@SET v=${NOWHERE_AT_ALL:-}${NOWHERE_AT_ALL}\n@SAT\n"},
     -EINVAL,
     "",
     "a:1:27: error: ${NOWHERE_AT_ALL} is neither set with @SET nor in the environment; ${NOWHERE_AT_ALL:-x} would "
     "give "
     "it a default\n@SET v=${NOWHERE_AT_ALL:-}${NOWHERE_AT_ALL}\n                          ^\n"
     "a:2:1: error: unknown directive; there are @INCLUDE and @SET\n@SAT\n^\n"},
    {{"a", "[SERVER]\n Deny 404\n return=410\n"}, /* the value of its own line counts */
     -EINVAL,
     "404@a:2",
     "a:3:2: error: unknown key \"return\" in [SERVER]; write \"Match PATH\" and \"Action deny 410\" in [RULES]\n"
     " return=410\n ^\n"},
    {{"a", "@INCLUDE loop/*\n"},
     -EINVAL,
     "",
     "a:1:10: error: cannot read the directory of \"loop/*\": Too many levels of symbolic links\n@INCLUDE loop/*\n     "
     "    ^\n"},
    {{"d/a", "@INCLUDE ./../d/a\n"}, -EINVAL, "", NULL}, /* the names differ each time: the depth ends it */
};

static void list_deny(const struct mk__conf_set *set, struct mk_buf *out)
{
    const struct sample_server *s = mk__conf_get(set, &sample_server);
    for (unsigned i = 0; i < s->deny.n; i++) {
        mk_buf_addf(out, "%s%.*s@", i ? " " : "", MK_STR_ARG(s->deny.items[i]));
        mk__conf_origin_print(mk__conf_origin(set, s, offsetof(struct sample_server, deny), i), out);
    }
}

static void run_case(const struct source_case *c)
{
    struct mk__conf *conf = sample_new();
    struct mk__conf_set *set = mk__conf_set_new(conf, MK_CONF_SCOPE_SERVER);
    struct mk_buf out;

    set_up();
    for (size_t f = 0; f < COUNT(c->files) && c->files[f]; f += 2)
        write_file(c->files[f], mk_str_c(c->files[f + 1]));
    mk_buf_init(&out, 1 << 16);
    assert_int_equal(mk__conf_read(conf, set, c->files[0]), c->result);
    list_deny(set, &out);
    assert_string_equal(mk_buf_cstr(&out), c->deny);
    out.len = 0;
    mk__conf_diagnostics(conf, &out);
    if (c->problems)
        assert_string_equal(mk_buf_cstr(&out), c->problems);
    else
        assert_non_null(strstr(mk_buf_cstr(&out), ": error: files are included more than 10 deep\n"));
    mk_buf_release(&out);
    mk__conf_free(conf);
    tear_down();
}

TEST(files)
{
    unsetenv("NOWHERE_AT_ALL");
    for (size_t i = 0; i < COUNT(cases); i++)
        run_case(&cases[i]);
}

TEST(unreadable)
{
    struct mk__conf *conf = sample_new();
    struct mk__conf_set *set = mk__conf_set_new(conf, MK_CONF_SCOPE_SERVER);
    static char big[(1 << 20) + 1];
    struct mk_buf out;

    set_up();
    memset(big, '\n', sizeof(big));
    write_file("fits", mk_str(big, sizeof(big) - 1));
    write_file("big", mk_str(big, sizeof(big)));
    assert_int_equal(mk__conf_read(conf, set, "fits"), 0);
    assert_int_equal(mk__conf_read(conf, set, "big"), -EFBIG);
    assert_int_equal(mk__conf_read(conf, set, "missing"), -ENOENT);
    assert_int_equal(mk__conf_read(conf, set, "d"), -EISDIR);
    mk_buf_init(&out, 4096);
    mk__conf_diagnostics(conf, &out);
    assert_string_equal(mk_buf_cstr(&out), "big: error: cannot be read: File too large\n"
                                           "missing: error: cannot be read: No such file or directory\n"
                                           "d: error: cannot be read: Is a directory\n");
    mk_buf_release(&out);
    mk__conf_free(conf);
    tear_down();
}

/* A path is seen from the file that holds it, an option's from the working directory. */
TEST(paths)
{
    struct mk__conf *conf = sample_new();
    struct mk__conf_set *set = mk__conf_set_new(conf, MK_CONF_SCOPE_HOST);
    const struct sample_host *host = mk__conf_get(set, &sample_host);
    char want[128];

    set_up();
    write_file("a", MK_STR("@INCLUDE d/b\n"));
    write_file("d/b", MK_STR("[HOST]\n DocumentRoot my files\n"));
    assert_int_equal(mk__conf_read(conf, set, "a"), 0);
    snprintf(want, sizeof(want), "%s/d/my files", root);
    assert_str_equal(host->root, want);
    snprintf(want, sizeof(want), "%s/a", root);
    assert_int_equal(mk__conf_read(conf, set, want), 0);
    snprintf(want, sizeof(want), "%s/d/my files", root);
    assert_str_equal(host->root, want);
    assert_int_equal(mk__conf_override(conf, set, "HOST", "DocumentRoot", MK_STR("x y"), "option -o"), 0);
    snprintf(want, sizeof(want), "%s/x y", root);
    assert_str_equal(host->root, want);
    snprintf(want, sizeof(want), "@INCLUDE %s/d/b\n", root);
    write_file("c", mk_str_c(want));
    assert_int_equal(mk__conf_read(conf, set, "c"), 0);
    mk__conf_free(conf);
    tear_down();
}

static int load(struct mk__conf *conf, struct mk_buf *out)
{
    struct mk__conf_set *server = mk__conf_set_new(conf, MK_CONF_SCOPE_SERVER);
    struct mk__conf_set *host = server ? mk__conf_set_new(conf, MK_CONF_SCOPE_HOST) : NULL;
    int r = host ? mk__conf_read(conf, server, "a") : -ENOMEM;

    r = r < 0 ? r : mk__conf_read_text(conf, host, "t", MK_STR("[HOST]\n DocumentRoot x\n[AUTH]\n Location /\n"));
    r = r < 0 ? r : mk__conf_override(conf, server, "SERVER", "Listen", MK_STR("81"), "option");
    r = r < 0 ? r : mk__conf_read_text(conf, server, "d", MK_STR("[GATE]\n Gates 2\n Location /\n[PAGES]\n 404 x\n"));
    if (r == 0)
        mk__conf_set_defaults(conf, host, server);
    r = r < 0 ? r : mk__conf_check(conf, server);
    r = r < 0 ? r : mk__conf_check(conf, host);
    if (r < 0) {
        assert_int_equal(r, -ENOMEM);
        return r;
    }
    mk__conf_show(server, out);
    mk__conf_show(host, out);
    mk__conf_reference(conf, out);
    return out->err;
}

static int load_once(void *ctx)
{
    struct mk__conf *conf = sample_new();
    struct mk_buf out;
    int r = -ENOMEM;

    (void)ctx;
    mk_buf_init(&out, 1 << 20);
    if (conf)
        r = load(conf, &out);
    mk_buf_release(&out);
    mk__conf_free(conf);
    return r;
}

static void write_files(void)
{
    set_up();
    write_file("a", MK_STR("@SET v=x\n@INCLUDE d/*.conf\n[MIMETYPES]\n a b\n c d\n"));
    write_file("d/x.conf", MK_STR("[SERVER]\n Title ${v}\n Deny a b c\n Listen 80 tls\n PidFile y\n"));
}

TEST(allocations_fail)
{
    write_files();
    assert_true(mk_test_failing_allocs(load_once, NULL) > 10);
    tear_down();
}

/* One of the two arenas has `size` bytes and not one more. */
static int load_within(bool texts, char *storage, size_t size)
{
    struct mk__conf *conf = mk__conf_new();
    struct mk_arena *arena = texts ? &conf->texts : &conf->arena;
    struct mk_buf out;
    int r;

    mk_arena_release(arena);
    mk_arena_init(arena, NULL, 0, storage, size);
    mk_buf_init(&out, 1 << 20);
    r = sample_declare(conf);
    r = r < 0 ? r : load(conf, &out);
    out.len = 0;
    mk__conf_diagnostics(conf, &out);
    assert_true(r == 0 || strstr(mk_buf_cstr(&out), "error: out of memory while reading the configuration\n"));
    mk_buf_release(&out);
    mk__conf_free(conf);
    return r;
}

/* However small an arena is, the result is -ENOMEM, until it is large enough. */
TEST(arenas_end)
{
    static char storage[32768] __attribute__((aligned(16)));
    write_files();
    for (int texts = 0; texts < 2; texts++) {
        size_t size = 0;
        for (int r = -ENOMEM; r < 0; size += 16) {
            r = load_within(texts, storage, size);
            assert_true(r == 0 || r == -ENOMEM);
            assert_true(size < sizeof(storage));
        }
        assert_true(size > 100);
    }
    tear_down();
}
