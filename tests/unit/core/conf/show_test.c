// SPDX-License-Identifier: Apache-2.0
/* The listing of the effective values, and that it can be read again. */
#include "testing.h"

#include "conf/sample.h"

static struct mk__conf_set *read_set(struct mk__conf *conf, enum mk_conf_scope scope, struct mk_str text)
{
    struct mk__conf_set *set = mk__conf_set_new(conf, scope);
    assert_int_equal(mk__conf_read_text(conf, set, "t", text), 0);
    return set;
}

static const char server_text[] = "[SERVER]\n"
                                  "    Workers 4\n"
                                  "    KeepAlive off\n"
                                  "    Timeout 90\n"
                                  "    MaxRequestSize 1500B\n"
                                  "    Title \"# \\${x} \\\"a\\\\\"\n"
                                  "    Deny a \"b c\"\n"
                                  "    Listen 80\n"
                                  "    Listen \"443\" tls\n"
                                  "    Deny d\n"
                                  "    SymLink inside\n"
                                  "[MIMETYPES]\n"
                                  "    html text/html\n"
                                  "    x \"\"\n";

static const char server_shown[] = "[SERVER]\n"
                                   "    Workers                9  # option -w\n"
                                   "    # Nice is not set\n"
                                   "    KeepAlive              Off  # t:3\n"
                                   "    Timeout                90s  # t:4\n"
                                   "    MaxRequestSize         1500B  # t:5\n"
                                   "    CacheSize              0  # default\n"
                                   "    Title                  \"# \\${x} \\\"a\\\\\"  # t:6\n"
                                   "    PidFile                \"\"  # default\n"
                                   "    Indexfile              index.html index.htm  # default\n"
                                   "    Deny                   a  # t:7\n"
                                   "    Deny                   \"b c\"  # t:7\n"
                                   "    Deny                   d  # t:10\n"
                                   "    Listen                 80  # t:8\n"
                                   "    Listen                 443 tls  # t:9\n"
                                   "    SymLink                Inside  # t:11\n"
                                   "\n"
                                   "[MIMETYPES]\n"
                                   "    html                   text/html  # t:13\n"
                                   "    x                      \"\"  # t:14\n"
                                   "\n"
                                   "[GATE]\n"
                                   "    Gates                  1  # default\n";

TEST(server)
{
    struct mk__conf *conf = sample_new();
    struct mk__conf_set *set = read_set(conf, MK_CONF_SCOPE_SERVER, mk_str_c(server_text));
    struct mk_buf out;

    mk_buf_init(&out, 4096);
    assert_int_equal(mk__conf_override(conf, set, "SERVER", "Workers", MK_STR("9"), "option -w"), 0);
    mk__conf_show(set, &out);
    assert_string_equal(mk_buf_cstr(&out), server_shown);
    mk_buf_release(&out);
    mk__conf_free(conf);
}

/* What is shown, read and shown again differs in the origins only. */
static void assert_round_trip(enum mk_conf_scope scope, struct mk_str text)
{
    struct mk__conf *conf = sample_new();
    struct mk_buf first, second;

    mk_buf_init(&first, 1 << 16);
    mk_buf_init(&second, 1 << 16);
    mk__conf_show(read_set(conf, scope, text), &first);
    mk__conf_show(read_set(conf, scope, mk_buf_str(&first)), &second);
    mk_buf_cstr(&first);
    mk_buf_cstr(&second);
    for (struct mk_buf *b = &first; b; b = b == &first ? &second : NULL)
        for (char *p = b->data; (p = memmem(p, b->len - (size_t)(p - b->data), "  # ", 4)); p++)
            memset(p, ' ', strcspn(p, "\n"));
    for (struct mk_buf *b = &first; b; b = b == &first ? &second : NULL) {
        size_t n = 0;
        for (size_t i = 0; i < b->len; i++)
            if (b->data[i] != ' ')
                b->data[n++] = b->data[i];
        b->len = n;
    }
    assert_string_equal(mk_buf_cstr(&first), mk_buf_cstr(&second));
    mk_buf_release(&first);
    mk_buf_release(&second);
    mk__conf_free(conf);
}

TEST(round_trips)
{
    assert_round_trip(MK_CONF_SCOPE_SERVER, MK_STR(""));
    assert_round_trip(MK_CONF_SCOPE_SERVER, mk_str(server_shown, sizeof(server_shown) - 1));
    assert_round_trip(MK_CONF_SCOPE_HOST, MK_STR(""));
    assert_round_trip(MK_CONF_SCOPE_HOST, MK_STR("[HOST]\n DocumentRoot a b\n ServerName a \"b c\" #\n"
                                                 "[AUTH]\n Location /a\n[AUTH]\n Location /b\n Title \"\"\n"));
    assert_round_trip(MK_CONF_SCOPE_SERVER, MK_STR("[SERVER]\n Title \"a {\"\n Deny \"{\" } \"a;\" \"b{\"\n"));
    assert_round_trip(MK_CONF_SCOPE_SERVER, MK_STR("[SERVER]\n Title \"= a\"\n Deny a = : => := += =b :c\n"));
}

TEST(sections_for_all_hosts)
{
    struct mk__conf *conf = sample_new();
    struct mk_buf out;
    mk_buf_init(&out, 4096);
    mk__conf_show(read_set(conf, MK_CONF_SCOPE_SERVER,
                           MK_STR("[GATE]\n Gates 3\n Location /a\n[PAGES]\n 404 x\n Match /b\n 500 \"y z\"\n")),
                  &out);
    const char *shown = strstr(mk_buf_cstr(&out), "[GATE]");
    assert_non_null(shown);
    assert_string_equal(shown, "[GATE]\n"
                               "    Gates                  3  # t:2\n"
                               "\n# for all hosts, after their own\n[GATE]\n"
                               "    Location               /a  # t:3\n"
                               "    Title                  \"Members only\"  # default\n"
                               "\n# for all hosts, after their own\n[PAGES]\n"
                               "    404                    x  # t:5\n"
                               "    500                    \"y z\"  # t:7\n"
                               "    Match                  /b  # t:6\n");
    assert_round_trip(MK_CONF_SCOPE_SERVER, mk_buf_str(&out));
    mk_buf_release(&out);
    mk__conf_free(conf);
}

TEST(repeated_section)
{
    struct mk__conf *conf = sample_new();
    struct mk_buf out;
    mk_buf_init(&out, 4096);
    mk__conf_show(read_set(conf, MK_CONF_SCOPE_HOST, MK_STR("[AUTH]\n Location /a\n[AUTH]\n Location /b\n")), &out);
    assert_string_equal(mk_buf_cstr(&out), "[HOST]\n"
                                           "    # ServerName is not set\n"
                                           "    # DocumentRoot is not set\n"
                                           "\n[AUTH]\n"
                                           "    Location               /a  # t:2\n"
                                           "    Title                  \"Members only\"  # default\n"
                                           "\n[AUTH]\n"
                                           "    Location               /b  # t:4\n"
                                           "    Title                  \"Members only\"  # default\n");
    mk_buf_release(&out);
    mk__conf_free(conf);
}

/* A listing that does not fit says so through its buffer. */
TEST(full_buffer)
{
    struct mk__conf *conf = sample_new();
    char storage[64];
    struct mk_buf out;
    mk_buf_init_fixed(&out, storage, sizeof(storage));
    mk__conf_show(mk__conf_set_new(conf, MK_CONF_SCOPE_SERVER), &out);
    assert_int_equal(out.err, -ENOBUFS);
    mk__conf_free(conf);
}
