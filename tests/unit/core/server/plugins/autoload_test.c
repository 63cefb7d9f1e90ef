// SPDX-License-Identifier: Apache-2.0
/* The sections that a configuration contains, found before it is loaded. */
#include "folder.h"

#include <errno.h>

#include "conf/conf.h"
#include "server/plugins/autoload.h"

static const char *const names[] = {"alpha", "beta", "gamma", "delta", NULL};

static int search(const char *dir, uint32_t *ret_wanted)
{
    struct mk__conf *conf = mk__conf_new();
    const struct mk__autoload_files files = {.dir = dir, .names = names};
    int err = conf ? mk__autoload_find_modules(conf, &files, ret_wanted) : -ENOMEM;
    mk__conf_free(conf);
    return err;
}

static uint32_t look(void)
{
    char dir[512];
    uint32_t wanted = 99;
    snprintf(dir, sizeof(dir), "%s", mk_test_folder);
    assert_int_equal(search(dir, &wanted), 0);
    return wanted;
}

TEST(words)
{
    static const struct {
        const char *text;
        uint32_t wanted;
    } cases[] = {
        {"", 0},
        {"[ALPHA]\n", 1},
        {"[SERVER]\n    Beta On\n", 2},
        {"[ Gamma ]\n", 4},
        {"  [gamma]\n", 0}, /* lines with errors */
        {"[gamma\n", 0},
        {"[gamma] x\n", 0},
        {"[SERVER]\nbeta On\n", 0},
        {"[SERVER]\n    Listen 443 \"alpha\n", 0},
        {"[\"gamma\"]\n", 0},
        {"[gamma]  # why\n", 4},
        {"# [ALPHA]\n", 0},
        {"[SERVER]\n    Workers alpha\n", 0},
        {"[SERVER]\n    Listen 443 alpha proxy gamma\n", 5},
        {"[SERVER]\n    listen 443 proxy # alpha\n", 0},
        {"[SERVER]\n    TransportLayer beta\n", 2},
        {"[SERVER]\n    Listen 443 \"alpha\" \"beta gamma\"\n", 1},
        {"[SERVER]\n    Listen 443\\\n    alpha\n", 1}, /* lines do not continue: this is a key */
        {"[SERVER]\n    Listen 443 ${NO_SUCH_VARIABLE:-beta}\n", 2},
        {"\xef\xbb\xbf[ALPHA]\n", 1},
        {"[ALPHABET]\n    Alp ha\n", 0},
        {"[delta]", 8},
        {"[ALPHA]\r\n[BETA]\n\n[ALPHA]\n", 3},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        mk_test_write("monkey.conf", mk_str_c(cases[i].text));
        if (look() != cases[i].wanted)
            fail_msg("case %zu", i);
    }
    mk_test_write("monkey.conf", MK_STR(""));
}

TEST(a_value)
{
    assert_int_equal(mk__autoload_match_word(MK_STR("beta"), names), 2);
    assert_int_equal(mk__autoload_match_word(MK_STR("DELTA"), names), 8);
    assert_int_equal(mk__autoload_match_word(MK_STR("127.0.0.1:443"), names), 0);
    assert_int_equal(mk__autoload_match_word(MK_STR(""), names), 0);
}

TEST(places)
{
    assert_int_equal(look(), 0);
    mk_test_write("sites/one", MK_STR("[ALPHA]\n"));
    mk_test_write("sites/two", MK_STR("[BETA]\n"));
    mk_test_write("plugins/gamma/gamma.conf", MK_STR("[GAMMA]\n"));
    mk_test_write("elsewhere", MK_STR("[DELTA]\n"));
    assert_int_equal(look(), 7);
    mk_test_write("plugins/gamma/more.conf", MK_STR("[DELTA]\n")); /* files that the server does not read */
    mk_test_write("sites/.hidden", MK_STR("[DELTA]\n"));
    mk_test_write("sites/two~", MK_STR("[DELTA]\n"));
    assert_int_equal(look(), 7);
}

TEST(included_files)
{
    mk_test_write("monkey.conf", MK_STR("@INCLUDE extra/*.conf\n[SERVER]\n    Workers 1\n"));
    mk_test_mkdir("extra");
    mk_test_write("extra/one.conf", MK_STR("[DELTA]\n    Key value\n"));
    assert_int_equal(look() & 8, 8);
    mk_test_write("monkey.conf", MK_STR("[SERVER]\n    Workers 1\n@INCLUDE missing\n@INCLUDE monkey.conf\n"));
    mk_test_write("sites/one", MK_STR("[ALPHA]\n@INCLUDE ../extra/one.conf\n"));
    assert_int_equal(look() & 8, 8);
    mk_test_write("sites/one", MK_STR("# @INCLUDE ../extra/one.conf\n"));
    assert_int_equal(look() & 8, 0);
}

/* A variable of monkey.conf is valid in the files that are read after it. */
TEST(variables)
{
    mk_test_write("monkey.conf", MK_STR("@SET carrier=delta\n@SET file=../extra/two\n"));
    mk_test_write("plugins/gamma/gamma.conf", MK_STR("[SERVER]\n    Listen 443 ${carrier}\n"));
    assert_int_equal(look() & 8, 8);
    mk_test_write("plugins/gamma/gamma.conf", MK_STR("[SERVER]\n    Listen 443 ${carier}\n"));
    assert_int_equal(look() & 8, 0);
    mk_test_write("extra/two", MK_STR("[DELTA]\n"));
    mk_test_write("sites/two", MK_STR("@INCLUDE ${file}\n"));
    assert_int_equal(look() & 8, 8);
}

/* A folder of files is served with the cache, which a program that writes its configuration chooses itself. */
TEST(files_are_cached)
{
    static const char *const plugins[] = {"static", "cache", NULL};
    const struct mk__autoload_files files = {.dir = mk_test_folder, .names = plugins};
    static const struct {
        const char *text;
        uint32_t from_files, from_text;
    } cases[] = {
        {"[HOST]\n    DocumentRoot /srv\n", 3, 1},
        {"[HOST]\n    documentroot /srv\n", 3, 1},
        {"[HOST]\n    ServerName a\n[PROXY]\n    To http://a\n", 0, 0},
        {"[CACHE]\n    Files Off\n", 2, 2},
        {"[HOST]\n    DocumentRoot /srv\n[CACHE]\n    Memory 1M\n", 3, 3},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        uint32_t from_files = 99, from_text = 0;
        struct mk__conf *conf = mk__conf_new(), *other = mk__conf_new();
        mk_test_write("monkey.conf", mk_str_c(cases[i].text));
        assert_int_equal(mk__autoload_find_modules(conf, &files, &from_files), 0);
        assert_int_equal(mk__autoload_find_in_text(other, mk_str_c(cases[i].text), plugins, &from_text), 0);
        mk__conf_free(conf);
        mk__conf_free(other);
        if (from_files != cases[i].from_files || from_text != cases[i].from_text)
            fail_msg("case %zu: %u, %u", i, from_files, from_text);
    }
    mk_test_write("monkey.conf", MK_STR(""));
}

/* Of a configuration that is one file nothing else is read. */
TEST(one_file)
{
    char path[512];
    uint32_t wanted = 0;
    struct mk__conf *conf = mk__conf_new();
    mk_test_write("one.conf", MK_STR("[HOST example.org]\n    DocumentRoot /srv\n[ALPHA]\n@INCLUDE extra/other\n"));
    mk_test_write("extra/other", MK_STR("[DELTA]\n"));
    snprintf(path, sizeof(path), "%s/one.conf", mk_test_folder);
    const struct mk__autoload_files files = {.dir = mk_test_folder, .file = path, .names = names};
    assert_int_equal(mk__autoload_find_modules(conf, &files, &wanted), 0);
    assert_int_equal(wanted, 9);
    mk__conf_free(conf);
}

static int look_again(void *ctx)
{
    uint32_t wanted;
    return search(ctx, &wanted);
}

TEST(every_allocation_may_fail)
{
    char dir[512];
    snprintf(dir, sizeof(dir), "%s", mk_test_folder);
    assert_true(mk_test_failing_allocs(look_again, dir) > 3);
}

static int set_up(void **state)
{
    if (mk_test_folder_make(state) < 0)
        return -1;
    mk_test_mkdir("sites");
    mk_test_mkdir("plugins");
    mk_test_mkdir("plugins/gamma");
    return 0;
}

TEST_FILE(set_up, mk_test_folder_remove)
