// SPDX-License-Identifier: Apache-2.0
/* Which declarations may stand together. */
#include "testing.h"

#include "conf/internal.h"
#include "conf/sample.h"

struct pair {
    bool a, b;
};

#define KEY(text, ...) MK_CONF_KEY_BOOL(struct pair, a, text, "On", "x", ##__VA_ARGS__)
static const struct mk_conf_key fine[] = {KEY("Fine"), KEY("Other"), {0}};
static const struct mk_conf_key clash[] = {KEY("workers"), {0}};
static const struct mk_conf_key locations[] = {KEY("Location"), {0}};
static const struct mk_conf_key twice[] = {KEY("Fine"), KEY("FINE"), {0}};
static const struct mk_conf_key repeated_bool[] = {KEY("Fine", .flags = MK_CONF_REPEAT), {0}};
static const struct mk_conf_key nameless_enum[] = {{.name = "Fine", .type = MK_CONF_ENUM}, {0}};
static const struct mk_conf_key mute_custom[] = {{.name = "Fine", .type = MK_CONF_CUSTOM}, {0}};
static const struct mk_conf_key outside[] = {KEY("Fine", .min = 0), {.name = "Far", .offset = 2, .size = 1}, {0}};

#define SECTION(text, rows, ...) \
    { \
        .name = text, .keys = rows, .size = sizeof(struct pair), ##__VA_ARGS__ \
    }
struct declare_case {
    struct mk_conf_section section;
    int result, result_absent;
};

static const struct declare_case cases[] = {
    {SECTION("NEW", fine), 0, 0},
    {SECTION("server", fine), 0, 0},
    {SECTION("SERVER", clash), -EEXIST, 0},
    {SECTION("SERVER", clash, .scope = MK_CONF_SCOPE_HOST), 0, 0},
    {SECTION("SERVER", fine, .flags = MK_CONF_REPEAT), -EINVAL, 0},
    {SECTION("SERVER", clash, .scope = MK_CONF_SCOPE_HOST, .flags = MK_CONF_REPEAT), -EEXIST, 0},
    {SECTION("SERVER", fine, .scope = MK_CONF_SCOPE_HOST, .flags = MK_CONF_REPEAT), 0, 0},
    {SECTION("SERVER", clash, .scope = MK_CONF_SCOPE_HOST, .flags = MK_CONF_REPEAT | MK_CONF_HOST_ONLY), 0, 0},
    {SECTION("AUTH", locations), -EEXIST, 0},
    {SECTION("AUTH", fine), 0, 0},
    {SECTION("AUTH", fine, .scope = MK_CONF_SCOPE_HOST, .flags = MK_CONF_REPEAT | MK_CONF_HOST_ONLY), -EINVAL, 0},
    {{.name = "SERVER", .flags = MK_CONF_PAIRS}, -EINVAL, 0},
    {{.name = "MIMETYPES", .flags = MK_CONF_PAIRS}, -EEXIST, 0},
    {SECTION("NEW", fine, .flags = MK_CONF_PAIRS), -EINVAL, -EINVAL},
    {SECTION("NEW", NULL), -EINVAL, -EINVAL},
    {SECTION("", fine), -EINVAL, -EINVAL},
    {SECTION("NEW", twice), -EINVAL, -EINVAL},
    {SECTION("NEW", repeated_bool), -EINVAL, -EINVAL},
    {SECTION("NEW", nameless_enum), -EINVAL, -EINVAL},
    {SECTION("NEW", mute_custom), -EINVAL, -EINVAL},
    {SECTION("NEW", outside), -EINVAL, -EINVAL},
};

TEST(declare)
{
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct mk__conf *conf = sample_new();
        assert_int_equal(mk__conf_declare(conf, &cases[i].section, "other"), cases[i].result);
        mk__conf_free(conf);
        conf = sample_new();
        assert_int_equal(mk__conf_declare_absent(conf, &cases[i].section, "other"), cases[i].result_absent);
        mk__conf_free(conf);
    }
}

/* Whatever the order, a plugin that is loaded gets the key that one that is not declares too. */
TEST(loaded_wins)
{
    static const struct mk_conf_section late = SECTION("SERVER", fine);
    struct mk__conf *conf = sample_new();
    assert_int_equal(mk__conf_declare_absent(conf, &late, "early"), 0);
    assert_int_equal(mk__conf_declare(conf, &late, "late"), 0);
    assert_int_equal(mk__conf_declare_absent(conf, &late, "last"), 0);
    const struct mk__conf_section_type *type = mk__schema_find_type(conf, MK_STR("Server"), MK_CONF_SCOPE_SERVER);
    assert_string_equal(mk__schema_find_key(type, MK_STR("fine")).registration->owner, "late");
    assert_ptr_equal(mk__schema_find_key(type, MK_STR("fine")).key, &fine[0]);
    assert_null(mk__schema_find_key(type, MK_STR("Fin")).key);
    assert_null(mk__schema_find_type(conf, MK_STR("SERVER"), MK_CONF_SCOPE_HOST));
    mk__conf_free(conf);
}

static void learn(struct mk__conf *conf, void *ctx)
{
    static const struct mk_conf_section late = SECTION("LATE", fine);
    unsigned *calls = ctx;
    ++*calls;
    assert_int_equal(mk__conf_declare_absent(conf, &late, "late"), 0);
}

/* Whose a name is may be found out when it is asked, once. */
TEST(unknown_names_may_be_learnt)
{
    struct mk__conf *conf = sample_new();
    struct mk_buf out;
    char text[4096];
    unsigned calls = 0;
    mk__conf_on_unknown(conf, learn, &calls);
    struct mk__conf_set *set = mk__conf_set_new(conf, MK_CONF_SCOPE_SERVER);
    mk__conf_read_text(conf, set, "good", MK_STR("[SERVER]\n"));
    assert_int_equal(calls, 0);
    mk__conf_read_text(conf, set, "bad", MK_STR("[LATE]\n    Fine On\n[LATER]\n"));
    assert_int_equal(calls, 1);
    mk_buf_init_fixed(&out, text, sizeof(text));
    mk__conf_diagnostics(conf, &out);
    assert_non_null(strstr(mk_buf_cstr(&out), "[LATE] belongs to the plugin \"late\", which is not loaded"));
    assert_non_null(strstr(mk_buf_cstr(&out), "unknown section [LATER]; did you mean [LATE]?"));
    mk__conf_free(conf);
}
