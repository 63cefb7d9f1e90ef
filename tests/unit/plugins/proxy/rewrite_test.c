// SPDX-License-Identifier: Apache-2.0
/* Locations and cookies of a backend, as the client gets them. */
#include "testing.h"

#include "arena.h"

#include "plugins/proxy/rewrite.h"

/* The backend is at back.example:81; `to`: the path behind it. */
static struct proxy_conf make_conf(const char *match, bool strips, const char *to)
{
    return (struct proxy_conf){
        .gateway = {.match = {.kind = MK_PATTERN_PREFIX, .text = mk_str_c(match)},
                    .to = {.authority = MK_STR("back.example:81"), .path = to ? mk_str_c(to) : MK_STR_NONE}},
        .strip_prefix = strips,
        .host_header = MK_STR("Client"),
    };
}

static const struct row {
    const char *match;
    bool strips;
    const char *to, *value, *wanted;
} locations[] =
    {
        {"/", false, NULL, "http://back.example:81/x?y", "/x?y"},
        {"/", false, NULL, "HTTPS://BACK.example:81#z", "/#z"},
        {"/", false, NULL, "http://back.example:811/", "http://back.example:811/"},
        {"/", false, NULL, "http://site.example", "/"},
        {"/", false, NULL, "", ""},
        {"/", false, NULL, "/", "/"},
        {"/", false, NULL, "//back.example:81/", "//back.example:81/"},
        {"/a/", true, NULL, "/x", "/a/x"},
        {"/a", true, NULL, "http://back.example:81?q", "/a/?q"},
        {"/a", false, "/v", "/v", "/a/"},
        {"/a", false, "/v", "/v?q", "/a/?q"},
        {"/a", false, "/v", "/vv", "/vv"},
        {"/a", false, "/v", "http://back.example:81", "/"},
        {"/a", false, "/v", "http://back.example:81?q", "/?q"},
        {"/", true, NULL, "/x", "/x"},
        /* a path that would name another host */
        {"/", false, NULL, "http://site.example//evil.example/x", "/.//evil.example/x"},
        {"/", false, NULL, "http://back.example:81//evil.example", "/.//evil.example"},
        {"/", false, NULL, "http://site.example/\\evil.example", "/./\\evil.example"},
        {"/", false, NULL, "http://site.example/\t\t/evil.example", "/./\t\t/evil.example"},
        {"/", false, "/v", "/v//evil.example", "/.//evil.example"},
        {"/", false, "/v", "http://back.example:81/v/\\evil.example", "/./\\evil.example"},
        {"/a", true, NULL, "http://back.example:81//evil.example", "/a//evil.example"},
        {"/", false, NULL, "http://site.example/\t", "/\t"},
        {"/", false, NULL, "http://site.example/x//y", "/x//y"},
},
  cookies[] = {
      {"/a", true, NULL, "", ""},
      {"/a", true, NULL, ";", ";"},
      {"/a", true, NULL, "a=b", "a=b"},
      {"/a", true, NULL, "a=b;Path", "a=b;Path"},
      {"/a", true, NULL, "a=b;Path=", "a=b;Path="},
      {"/a", true, NULL, "a=b;Path=x", "a=b;Path=x"},
      {"/a", true, NULL, "a=b;Path=\"/\"", "a=b;Path=\"/\""},
      {"/a", true, NULL, "a=b;Path=/", "a=b;Path=/a"},
      {"/a/", true, NULL, "a=b;Path=/;", "a=b;Path=/a;"},
      {"/a", true, NULL, "a=b;\tPATH =\t/x/ ;Secure", "a=b;\tPATH =\t/a/x/ ;Secure"},
      {"/a", true, NULL, "Path=/x", "Path=/x"},
      {"/", true, NULL, "a=b;Path=/", "a=b;Path=/"},
      {"/a", false, NULL, "a=b;Path=/x", "a=b;Path=/x"},
      {"/", false, "/v", "a=b;Path=/v", "a=b;Path=/"},
      {"/a", false, "/v", "a=b;Path=/v/", "a=b;Path=/a/"},
      {"/a", false, "/v", "a=b;Path=/", "a=b;Path=/"},
      {"/a", true, NULL, "a=b;Path=/x;Domain=back.example", "a=b;Path=/a/x;Domain=site.example"},
      {"/", false, NULL, "a=b;Domain=.BACK.example;X", "a=b;Domain=site.example;X"},
      {"/", false, NULL, "a=b;Domain=back.example:81", "a=b;Domain=back.example:81"},
      {"/", false, NULL, "a=b;Domain=sub.back.example", "a=b;Domain=sub.back.example"},
      {"/", false, NULL, "a=b;Domain=back.example;Domain=x", "a=b;Domain=back.example;Domain=x"},
      {"/", false, NULL, "a=b;Domain=.", "a=b;Domain=."},
      {"/a", true, NULL, "__host-a=b;Path=/", "__host-a=b;Path=/"},
};

TEST(location)
{
    for (size_t i = 0; i < COUNT(locations); i++) {
        const struct row *row = &locations[i];
        struct proxy_conf conf = make_conf(row->match, row->strips, row->to);
        assert_str_equal(rewrite_location(&conf, MK_STR("site.example"), mk_str_c(row->value), &arena), row->wanted);
    }
}

TEST(cookie)
{
    for (size_t i = 0; i < COUNT(cookies); i++) {
        const struct row *row = &cookies[i];
        struct proxy_conf conf = make_conf(row->match, row->strips, row->to);
        assert_str_equal(rewrite_cookie(&conf, MK_STR("site.example"), mk_str_c(row->value), &arena), row->wanted);
    }
}

/* A host that the client has sent must not begin an attribute. */
TEST(hosts)
{
    static const char *const hosts[] = {"", "a;b", "a b", "a,b", "back.example"};
    struct proxy_conf conf = make_conf("/", false, NULL);
    for (size_t i = 0; i < COUNT(hosts); i++)
        assert_str_equal(rewrite_cookie(&conf, mk_str_c(hosts[i]), MK_STR("a=b;Domain=.back.example"), &arena),
                         "a=b;Domain=.back.example");
    conf.host_header = MK_STR("app.example:5");
    assert_str_equal(rewrite_cookie(&conf, MK_STR("[::1]"), MK_STR("a=b;Domain=app.example"), &arena),
                     "a=b;Domain=[::1]");
    assert_str_equal(rewrite_location(&conf, MK_STR("x"), MK_STR("http://app.example:5/y"), &arena), "/y");
}

TEST(no_memory)
{
    struct proxy_conf conf = make_conf("/a", true, NULL);
    struct mk_arena small;
    mk_arena_init(&small, NULL, 1, NULL, 0);
    assert_str_equal(rewrite_cookie(&conf, MK_STR("x"), MK_STR("a=b;Path=/;Domain=back.example"), &small),
                     "a=b;Path=/;Domain=back.example");
    assert_str_equal(rewrite_location(&conf, MK_STR("x"), MK_STR("/x"), &small), "/x");
    mk_arena_release(&small);
}

TEST_FILE(mk_test_arena_open, mk_test_arena_close)
