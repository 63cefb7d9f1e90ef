// SPDX-License-Identifier: Apache-2.0
/* Sentences, lines and carets: a text with mistakes in, the whole print out. Covers unknown_key.c and bind.c as well.
 */
#include "testing.h"

#include <stdio.h>

#include "conf/sample.h"

struct problem_case {
    enum mk_conf_scope scope;
    const char *text;
    const char *problems;
};

static const struct problem_case cases[] = {
    {MK_CONF_SCOPE_SERVER, "[SERVER]\n    Workers 4\n", ""},
    {MK_CONF_SCOPE_SERVER, "[SERVER]\n    Workerss 2\n",
     "t:2:5: error: unknown key \"Workerss\" in [SERVER]; did you mean \"Workers\"?\n    Workerss 2\n    ^\n"},
    {MK_CONF_SCOPE_SERVER, "[SERVER]\n\tTimeout\t5x # c\r\n",
     "t:2:10: error: \"Timeout\" wants a duration from 1s to 1h, not \"5x\" (units: ms, s, m, h, d)\n"
     "\tTimeout\t5x # c\n\t       \t^\n"},
    {MK_CONF_SCOPE_SERVER, "[server]\n  symlink Of\n",
     "t:2:11: error: \"SymLink\" wants one of Off, Inside, On, not \"Of\"; did you mean \"Off\"?\n"
     "  symlink Of\n          ^\n"},
    {MK_CONF_SCOPE_SERVER, "[SERVER]\n  Title \xc3\xa4 ${NOWHERE_AT_ALL}\n",
     "t:2:12: error: ${NOWHERE_AT_ALL} is neither set with @SET nor in the environment; ${NOWHERE_AT_ALL:-x} would "
     "give "
     "it a default\n  Title \xc3\xa4 ${NOWHERE_AT_ALL}\n          ^\n"},
    {MK_CONF_SCOPE_SERVER, "[SERVER]\n  Workers 1 2\n  Workers 3\n  Workers 4\n",
     "t:2:13: error: \"Workers\" takes one value only\n  Workers 1 2\n            ^\n"
     "t:3:3: error: \"Workers\" is set twice; the first time in line 2\n  Workers 3\n  ^\n"
     "t:4:3: error: \"Workers\" is set twice; the first time in line 2\n  Workers 4\n  ^\n"},
    {MK_CONF_SCOPE_SERVER, "[SERVER]\n  Workers\n  Title # nothing\n",
     "t:2:3: error: \"Workers\" wants a value\n  Workers\n  ^\n"
     "t:3:3: error: \"Title\" wants a value\n  Title # nothing\n  ^\n"},
    {MK_CONF_SCOPE_SERVER, "[SERVER]\n  Listen 80 tls\n  Listen http\n  Listen 1 2\n",
     "t:3:10: error: \"Listen\": \"http\" is no port\n  Listen http\n         ^\n"
     "t:4:10: error: \"Listen\" wants port [tls], not \"1 2\"\n  Listen 1 2\n         ^\n"},
    {MK_CONF_SCOPE_SERVER, "  A 1\n  B 2\n", "t:1:3: error: a key needs a [SECTION] above it\n  A 1\n  ^\n"},
    {MK_CONF_SCOPE_SERVER, "[SERVR]\n  A 1\n  B 2\n[X]\n",
     "t:1:1: error: unknown section [SERVR]; did you mean [SERVER]?\n[SERVR]\n^\n"
     "t:4:1: error: unknown section [X]\n[X]\n^\n"},
    {MK_CONF_SCOPE_SERVER, "[HOST]\n  A 1\n",
     "t:1:1: error: [HOST] belongs in a file of sites/, not here\n[HOST]\n^\n"},
    {MK_CONF_SCOPE_HOST, "[HOST]\n  DocumentRoot /\n[server]\n  A 1\n",
     "t:3:1: error: [SERVER] belongs in monkey.conf, not here\n[server]\n^\n"},
    {MK_CONF_SCOPE_HOST, "[HOST]\n  DocumentRoot /\n  Workers 1\n  Zonk 1\n",
     "t:3:3: error: unknown key \"Workers\" in [HOST]; it belongs in [SERVER], in monkey.conf\n  Workers 1\n  ^\n"
     "t:4:3: error: unknown key \"Zonk\" in [HOST]\n  Zonk 1\n  ^\n"},
    {MK_CONF_SCOPE_SERVER, "[Cheetah]\n  A 1\n[SERVER]\n  shell x\n  Shel x\n",
     "t:1:1: error: [CHEETAH] belongs to the plugin \"cheetah\", which is not loaded: add \"Load cheetah\" to "
     "plugins.load\n[Cheetah]\n^\n"
     "t:4:3: error: \"Shell\" belongs to the plugin \"cheetah\", which is not loaded: add \"Load cheetah\" to "
     "plugins.load\n  shell x\n  ^\n"
     "t:5:3: error: unknown key \"Shel\" in [SERVER]\n  Shel x\n  ^\n"},
    {MK_CONF_SCOPE_SERVER, "[SERVER]\n  Workers 13\n  Timeout 2m\n  KeepAlive Off\n",
     "t:2:11: error: 13 workers bring bad luck\n  Workers 13\n          ^\n"
     "t:3:11: warning: a long \"Timeout\" without \"KeepAlive\"\n  Timeout 2m\n          ^\n"},
    {MK_CONF_SCOPE_SERVER, "\n[SERVER]\n  Nice 13\n",
     "t:2:1: error: so modest a process needs a \"Title\"\n[SERVER]\n^\n"},
    {MK_CONF_SCOPE_HOST, "[AUTH]\n  Title x\n",
     "t:1:1: error: the section [HOST] is missing: each file of sites/ is a host, and has it; move other files to "
     "another folder\n[AUTH]\n^\n"
     "t:1:1: error: [AUTH] lacks \"Location\", which must be set\n[AUTH]\n^\n"},
    {MK_CONF_SCOPE_HOST, "[HOST]\n  DocumentRoot \"\"\n",
     "t:2:17: error: \"DocumentRoot\" wants a path, not \"\"\n  DocumentRoot \"\"\n                ^\n"},
    {MK_CONF_SCOPE_HOST, "[HOST]\n", "t:1:1: error: [HOST] lacks \"DocumentRoot\", which must be set\n[HOST]\n^\n"},
    {MK_CONF_SCOPE_SERVER, "@INCLUDE x\n", "t:1:1: error: @INCLUDE works in files only\n@INCLUDE x\n^\n"},
    {MK_CONF_SCOPE_SERVER, "[SERVER]\n  Title a\033b\n", "t:2:10: error: control byte 0x1b\n  Title a?b\n         ^\n"},
    {MK_CONF_SCOPE_SERVER, "[SERVICE]\n  Location x\n[SPOTS]\n[AUHT]\n[PGES]\n",
     "t:1:1: error: [SERVICE] belongs in a file of sites/, not here\n[SERVICE]\n^\n"
     "t:3:1: error: [SPOTS] belongs to the plugin \"cheetah\", which is not loaded: add \"Load cheetah\" to "
     "plugins.load\n[SPOTS]\n^\n"
     "t:4:1: error: unknown section [AUHT]; did you mean [AUTH]?\n[AUHT]\n^\n"
     "t:5:1: error: unknown section [PGES]; did you mean [PAGES]?\n[PGES]\n^\n"},
    {MK_CONF_SCOPE_SERVER, "[GATE]\n  Gate 1\n  Locatoin x\n  Zonk 1\n  Title y\n  Title z\n",
     "t:2:3: error: unknown key \"Gate\" in [GATE]; did you mean \"Gates\"?\n  Gate 1\n  ^\n"
     "t:3:3: error: unknown key \"Locatoin\" in [GATE]; did you mean \"Location\"?\n  Locatoin x\n  ^\n"
     "t:4:3: error: unknown key \"Zonk\" in [GATE]\n  Zonk 1\n  ^\n"
     "t:6:3: error: \"Title\" is set twice; the first time in line 5\n  Title z\n  ^\n"
     "t:1:1: error: [GATE] lacks \"Location\", which must be set\n[GATE]\n^\n"},
    {MK_CONF_SCOPE_SERVER, "[AUTH]\n  Title x\n",
     "t:1:1: error: [AUTH] lacks \"Location\", which must be set\n[AUTH]\n^\n"},
    {MK_CONF_SCOPE_SERVER, "[MIMETYPES]\n  html\n", "t:2:3: error: \"html\" wants a value\n  html\n  ^\n"},
};

TEST(problems)
{
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct mk__conf *conf = sample_new();
        struct mk__conf_set *set = mk__conf_set_new(conf, cases[i].scope);
        struct mk_buf out;
        int r = mk__conf_read_text(conf, set, "t", mk_str_c(cases[i].text));
        if (r == 0)
            r = mk__conf_check(conf, set);
        else
            mk__conf_check(conf, set);
        mk_buf_init(&out, 1 << 16);
        mk__conf_diagnostics(conf, &out);
        assert_string_equal(mk_buf_cstr(&out), cases[i].problems);
        assert_int_equal(r, *cases[i].problems ? -EINVAL : 0);
        mk_buf_release(&out);
        mk__conf_free(conf);
    }
}

/* The line vanishes when the texts are given back, the place stays. */
TEST(settled)
{
    struct mk__conf *conf = sample_new();
    struct mk__conf_set *set = mk__conf_set_new(conf, MK_CONF_SCOPE_SERVER);
    const struct sample_server *server = mk__conf_get(set, &sample_server);
    struct mk_buf out;

    assert_int_equal(mk__conf_read_text(conf, set, "t", MK_STR("[SERVER]\n  Title x\n")), 0);
    mk__conf_free_texts(conf);
    mk__conf_warn(conf, mk__conf_origin(set, server, offsetof(struct sample_server, title), 0), "too %s", "short");
    mk__conf_error(conf, mk__conf_origin(set, server, offsetof(struct sample_server, nice), 0), "not \x1b[1mnice");
    mk_buf_init(&out, 4096);
    mk__conf_diagnostics(conf, &out);
    assert_string_equal(mk_buf_cstr(&out), "t:2:9: warning: too short\nerror: not ?[1mnice\n");
    assert_int_equal(mk__conf_errors(conf), 1);
    mk_buf_release(&out);
    mk__conf_free(conf);
}

TEST(only_a_hundred_are_kept)
{
    struct mk__conf *conf = sample_new();
    struct mk__conf_set *set = mk__conf_set_new(conf, MK_CONF_SCOPE_SERVER);
    struct mk_buf text, out;
    unsigned lines = 0;

    mk_buf_init(&text, 1 << 16);
    mk_buf_init(&out, 1 << 16);
    mk_buf_addf(&text, "[SERVER]\n");
    for (int i = 0; i < 130; i++)
        mk_buf_addf(&text, "  Xxxxxxxxxx%d 1\n", i);
    assert_int_equal(mk__conf_read_text(conf, set, "t", mk_buf_str(&text)), -EINVAL);
    assert_int_equal(mk__conf_errors(conf), 130);
    mk__conf_diagnostics(conf, &out);
    for (size_t i = 0; i < out.len; i++)
        lines += out.data[i] == '\n';
    assert_int_equal(lines, 301);
    assert_non_null(strstr(mk_buf_cstr(&out), "t:101:3: error: "));
    assert_string_equal(strstr(mk_buf_cstr(&out), "..."), "... and 30 more\n");
    mk_buf_release(&text);
    mk_buf_release(&out);
    mk__conf_free(conf);
}

/* A line too long to be shown whole is cut; the caret comes only below what is shown. */
TEST(long_line)
{
    struct mk__conf *conf = sample_new();
    struct mk__conf_set *set = mk__conf_set_new(conf, MK_CONF_SCOPE_SERVER);
    char text[1000], want[400];
    struct mk_buf out;

    snprintf(text, sizeof(text), "[SERVER]\n  Indexfile %0300d \"x\n", 0);
    assert_int_equal(mk__conf_read_text(conf, set, "t", mk_str_c(text)), -EINVAL);
    mk_buf_init(&out, 4096);
    mk__conf_diagnostics(conf, &out);
    snprintf(want, sizeof(want), "t:2:314: error: this quote is never closed\n  Indexfile %0148d\n", 0);
    assert_string_equal(mk_buf_cstr(&out), want);
    mk_buf_release(&out);
    mk__conf_free(conf);
}

/* A word is not cut within a character. */
TEST(long_word_of_utf8)
{
    struct mk__conf *conf = sample_new();
    char word[2 * 205 + 1], want[2 * 200 + 64];
    struct mk_buf out;

    for (size_t i = 0; i < 205; i++)
        memcpy(word + 2 * i, "\xc3\xa9", 3);
    mk__conf_error(conf, (struct mk__conf_origin){0}, "%s is too long", word);
    mk_buf_init(&out, 4096);
    mk__conf_diagnostics(conf, &out);
    snprintf(want, sizeof(want), "error: %.400s... is too long\n", word);
    assert_string_equal(mk_buf_cstr(&out), want);
    mk_buf_release(&out);
    mk__conf_free(conf);
}

/* What is said of a long word is seen. */
TEST(long_word)
{
    struct mk__conf *conf = sample_new();
    char want[800];
    struct mk_buf out;

    mk__conf_error(conf, (struct mk__conf_origin){0}, "%0203d and %0204d are too long; %0200d is not", 0, 0, 0);
    mk_buf_init(&out, 4096);
    mk__conf_diagnostics(conf, &out);
    snprintf(want, sizeof(want), "error: %0200d... and %0200d... are too long; %0200d is not\n", 0, 0, 0);
    assert_string_equal(mk_buf_cstr(&out), want);
    mk_buf_release(&out);
    mk__conf_free(conf);
}
