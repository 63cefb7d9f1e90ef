// SPDX-License-Identifier: Apache-2.0
/* URLs in headers: of a backend, as the client gets them, and the other way round. */
#include "testing.h"

#include "arena.h"

#include <monkey/base/arena.h>
#include <monkey/base/buf.h>

#include "plugins/proxy/proxy.h"

/* The client asks http://site.example; the backend is http://back.example:81, with `to` as the path behind that. */
static struct mapping make_mapping(const char *match, bool strips, const char *to)
{
    bool replaces = strips || to;
    return (struct mapping){
        .client = {.scheme = MK_STR("http"),
                   .authorities = {MK_STR("site.example")},
                   .prefix = replaces ? mk_str_strip_end(mk_str_c(match), "/") : MK_STR("")},
        .backend = {.scheme = MK_STR("http"),
                    .authorities = {MK_STR("site.example"), MK_STR("back.example:81")},
                    .prefix = to ? mk_str_c(to) : MK_STR("")},
        .host = MK_STR("site.example"),
    };
}

static const struct row {
    const char *match;
    bool strips;
    const char *to, *value, *wanted;
} locations[] =
    {
        {"/", false, NULL, "http://back.example:81/x?y", "/x?y"},
        {"/", false, NULL, "HTTP://BACK.example:81#z", "/#z"},
        {"/", false, NULL, "https://back.example:81/x", "https://back.example:81/x"},
        {"/", false, NULL, "https://site.example/x", "https://site.example/x"},
        {"/", false, NULL, "ftp://site.example/x", "ftp://site.example/x"},
        {"/", false, NULL, "http:/x", "http:/x"},
        {"/", false, NULL, "http:///x", "http:///x"},
        {"/", false, NULL, "http://:80/x", "http://:80/x"},
        {"/", false, NULL, "http://back.example:811/", "http://back.example:811/"},
        {"/", false, NULL, "http://site.example", "/"},
        {"/", false, NULL, "", ""},
        {"/", false, NULL, "/", "/"},
        {"/", false, NULL, "//back.example:81/", "/"},
        {"/", false, NULL, "//site.example/x", "/x"},
        {"/", false, NULL, "//other.example/x", "//other.example/x"},
        /* ports and userinfo */
        {"/", false, NULL, "http://site.example:80/x", "/x"},
        {"/", false, NULL, "http://site.example:/x", "/x"},
        {"/", false, NULL, "http://site.example:443/x", "http://site.example:443/x"},
        {"/", false, NULL, "http://site.example:8080/x", "http://site.example:8080/x"},
        {"/", false, NULL, "http://back.example/x", "http://back.example/x"},
        {"/", false, NULL, "http://u@site.example/x", "http://u@site.example/x"},
        {"/", false, NULL, "http://u:p@back.example:81/x", "http://u:p@back.example:81/x"},
        {"/", false, NULL, "http://site.example@evil.example/", "http://site.example@evil.example/"},
        {"/", false, NULL, "http://site.example.evil.example/", "http://site.example.evil.example/"},
        {"/", false, NULL, "http://site.example\\@evil.example/", "http://site.example\\@evil.example/"},
        /* references without a path from the root */
        {"/a", true, NULL, "x/y", "x/y"},
        {"/a", true, NULL, "../x", "../x"},
        {"/a", true, NULL, "?q", "?q"},
        {"/a", true, NULL, "#f", "#f"},
        {"/a", true, NULL, "", ""},
        {"/a", true, NULL, "http://site.example?q#f", "/a/?q#f"},
        {"/a", true, NULL, "http://other.example/x", "http://other.example/x"},
        {"/a", true, NULL, "https://site.example/x", "https://site.example/x"},
        /* an application that knows the prefix */
        {"/a", true, NULL, "/a", "/a"},
        {"/a", true, NULL, "/a/", "/a/"},
        {"/a", true, NULL, "/a?q", "/a?q"},
        {"/a", true, NULL, "/a#f", "/a#f"},
        {"/a", true, NULL, "/a/x", "/a/x"},
        {"/a", true, NULL, "/ab", "/a/ab"},
        {"/a", true, NULL, "/A/x", "/a/A/x"},
        {"/a", true, NULL, "/%61/x", "/%61/x"},
        {"/a", true, NULL, "/a%2Fx", "/a/a%2Fx"},
        {"/a", true, NULL, "/a%3Fx", "/a/a%3Fx"},
        {"/a", true, NULL, "http://site.example/a/x", "/a/x"},
        {"/a", true, NULL, "http://back.example:81/a/x", "/a/x"},
        {"/a", true, NULL, "//site.example/a/x", "/a/x"},
        {"/%C3%A9", true, NULL, "/%c3%a9/x", "/%c3%a9/x"},
        {"/%C3%A9", true, NULL, "/x", "/%C3%A9/x"},
        {"/a", false, "/v", "/a/x", "/a/x"},
        {"/a", false, "/v", "/%76/x", "/a/x"},
        {"/a", false, "/a", "/a/x", "/a/x"},
        {"/a", false, "/a/v", "/a/v/x", "/a/x"},
        {"/a", false, "/a/v", "/a/x", "/a/x"},
        {"/v/a", false, "/v", "/v/a/x", "/v/a/x"},
        {"/v/a", false, "/v", "/v/x", "/v/a/x"},
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
  cookies[] =
      {
          {"/a", true, NULL, "", ""},
          {"/a", true, NULL, ";", ";"},
          {"/a", true, NULL, "a=b", "a=b"},
          {"/a", true, NULL, "a=b;Path", "a=b;Path"},
          {"/a", true, NULL, "a=b;Path=", "a=b;Path="},
          {"/a", true, NULL, "a=b;Path=x", "a=b;Path=x"},
          {"/a", true, NULL, "a=b;Path=\"/\"", "a=b;Path=\"/\""},
          {"/a", true, NULL, "a=b;Path=/", "a=b;Path=/a"},
          {"/a", true, NULL, "a=b;Path=/a", "a=b;Path=/a"},
          {"/a", true, NULL, "a=b;Path=/a/", "a=b;Path=/a/"},
          {"/a", true, NULL, "a=b;Path=/a/x", "a=b;Path=/a/x"},
          {"/a", true, NULL, "a=b;Path=/ab", "a=b;Path=/a/ab"},
          {"/v/a", false, "/v", "a=b;Path=/v/a", "a=b;Path=/v/a"},
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
},
  refreshes[] =
      {
          {"/a", true, NULL, "5", "5"},
          {"/a", true, NULL, "5;", "5;"},
          {"/a", true, NULL, "5; url=/x", "5; url=/a/x"},
          {"/a", true, NULL, "0;URL = '/x'", "0;URL = '/a/x'"},
          {"/a", true, NULL, "1.5 , url=\"/x\" y", "1.5 , url=\"/a/x\" y"},
          {"/a", true, NULL, "5; /x", "5; /a/x"},
          {"/a", true, NULL, "5; url", "5; url"},
          {"/a", true, NULL, "5; url=/a/x", "5; url=/a/x"},
          {"/a", true, NULL, "5; url=http://back.example:81/x", "5; url=/a/x"},
          {"/a", true, NULL, "5; url=https://site.example/x", "5; url=https://site.example/x"},
          {"/a", true, NULL, "5; url=http://other.example/x", "5; url=http://other.example/x"},
          {"/a", true, NULL, "5 url=/x", "5 url=/x"},
          {"/", false, NULL, "5; url=http://back.example:81/x", "5; url=/x"},
},
  links[] =
      {
          {"/a", true, NULL, "", ""},
          {"/a", true, NULL, "</x>", "</a/x>"},
          {"/a", true, NULL, "</x>; rel=preload, </a/y>;as=style,<z>", "</a/x>; rel=preload, </a/y>;as=style,<z>"},
          {"/a", true, NULL, "</x>; title=\"</y>\\\"</z>\", </w>", "</a/x>; title=\"</y>\\\"</z>\", </a/w>"},
          {"/a", true, NULL, "</x", "</x"},
          {"/a", true, NULL, "<></x>", "<></a/x>"},
          {"/a", true, NULL, "a\"\\", "a\"\\"},
          {"/a", true, NULL, "<http://back.example:81/x>; rel=next", "</a/x>; rel=next"},
          {"/", false, NULL, "<http://back.example:81/x?p=2>; rel=\"next\"", "</x?p=2>; rel=\"next\""},
          {"/", false, NULL, "<https://site.example/x>, <//cdn.example/y>",
           "<https://site.example/x>, <//cdn.example/y>"},
},
  destinations[] =
      {
          {"/", false, NULL, "http://site.example/x", "http://site.example/x"},
          {"/", false, NULL, "HTTP://SITE.example:80/x", "http://site.example/x"},
          {"/", false, NULL, "https://site.example/x", "https://site.example/x"},
          {"/", false, NULL, "http://other.example/x", "http://other.example/x"},
          {"/a", true, NULL, "http://site.example/a/b%20c", "http://site.example/b%20c"},
          {"/a", true, NULL, "http://site.example/a", "http://site.example/"},
          {"/a", true, NULL, "http://site.example/ab", "http://site.example/ab"},
          {"/a", true, NULL, "/a/x", "/x"},
          {"/a", true, NULL, "/a//x", "/.//x"},
          {"/a", true, NULL, "/x", "/x"},
          {"/a", true, NULL, "x", "x"},
          {"/a", true, NULL, "//site.example/a/x", "//site.example/a/x"},
          {"/a", false, "/v", "http://site.example/a/x", "http://site.example/v/x"},
          {"/a", false, "/v", "http://site.example/a", "http://site.example/v"},
          {"/a", false, "/a/v", "http://site.example/a/v/x", "http://site.example/a/v/v/x"},
},
  conditions[] = {
      {"/a", true, NULL, "(<urn:uuid:1> [\"e\"])", "(<urn:uuid:1> [\"e\"])"},
      {"/a", true, NULL, "<http://site.example/a/x> (<urn:uuid:1>)", "<http://site.example/x> (<urn:uuid:1>)"},
      {"/a", true, NULL, "</a/x>(Not <DAV:no-lock>)([W/\"e\"])</a/y> (<z>)",
       "</x>(Not <DAV:no-lock>)([W/\"e\"])</y> (<z>)"},
      {"/a", true, NULL, "(<http://site.example/a/x>)", "(<http://site.example/a/x>)"},
      {"/a", true, NULL, "([\")</a/x>\"] <)</a/y>) </a/z> ()", "([\")</a/x>\"] <)</a/y>) </z> ()"},
      {"/a", true, NULL, "<http://other.example/a/x> (<urn:uuid:1>)", "<http://other.example/a/x> (<urn:uuid:1>)"},
      {"/a", true, NULL, "</a/x", "</a/x"},
      {"/a", true, NULL, "(</a/x> </a/y>", "(</a/x> </a/y>"},
      {"/a", true, NULL, "<", "<"},
      {"/a", false, "/v", "<http://site.example/a/x> (<t>)", "<http://site.example/v/x> (<t>)"},
};

static void check_rows(const struct row *rows, size_t n, rewrite_fn rewrite)
{
    for (size_t i = 0; i < n; i++) {
        struct mapping m = make_mapping(rows[i].match, rows[i].strips, rows[i].to);
        assert_str_equal(rewrite(&m, mk_str_c(rows[i].value), &arena), rows[i].wanted);
    }
}

static struct mk_str rewrite_destination(const struct mapping *m, struct mk_str value, struct mk_arena *into)
{
    MK_BUF_ON_STACK(out, 256);
    rewrite_write_destination(m, value, &out);
    return mk_arena_dup(into, mk_buf_str(&out));
}

static struct mk_str rewrite_if(const struct mapping *m, struct mk_str value, struct mk_arena *into)
{
    MK_BUF_ON_STACK(out, 256);
    rewrite_write_if(m, value, &out);
    return mk_arena_dup(into, mk_buf_str(&out));
}

TEST(values)
{
    check_rows(locations, COUNT(locations), rewrite_location);
    check_rows(cookies, COUNT(cookies), rewrite_cookie);
    check_rows(refreshes, COUNT(refreshes), rewrite_refresh);
    check_rows(links, COUNT(links), rewrite_link);
    check_rows(destinations, COUNT(destinations), rewrite_destination);
    check_rows(conditions, COUNT(conditions), rewrite_if);
}

/* Which origins are those of the backend and of this host, and what a Destination names then. */
TEST(origins)
{
    static const struct {
        const char *scheme, *authority, *forwarded, *to_scheme, *to, *host; /* `host`: that the backend gets */
        const char *value, *location, *destination;
    } rows[] = {
        /* HTTPS before a backend without it */
        {"https", "s.example", "", "http", "b:81", "s.example", "https://s.example/x", "/x", "http://s.example/x"},
        {"https", "s.example", "", "http", "b:81", "s.example", "https://s.example:443/x", "/x", "http://s.example/x"},
        {"https", "s.example", "", "http", "b:81", "s.example", "http://s.example/x", NULL, NULL},
        {"https", "s.example", "", "http", "b:81", "s.example", "http://b:81/x", "/x", NULL},
        {"https", "s.example", "", "http", "b:81", "b:81", "https://b:81/x", "/x", NULL},
        {"https", "s.example", "", "http", "b", "b", "https://b/x", "/x", NULL},
        {"https", "s.example", "", "http", "b", "b", "https://s.example/x", "/x", "http://b/x"},
        /* HTTP before a backend with TLS */
        {"http", "s.example", "", "https", "b", "b", "https://b:443/x", "/x", NULL},
        {"http", "s.example", "", "https", "b", "b", "http://b/x", "/x", NULL},
        {"http", "s.example", "", "https", "b", "b", "https://s.example/x", NULL, NULL},
        {"http", "s.example", "", "https", "b", "b", "http://s.example/x", "/x", "https://b/x"},
        /* other ports */
        {"http", "s.example:8080", "", "http", "b:81", "s.example:8080", "http://s.example:8080/x", "/x",
         "http://s.example:8080/x"},
        {"http", "s.example:8080", "", "http", "b:81", "s.example:8080", "http://s.example/x", NULL, NULL},
        {"http", "s.example:8080", "", "http", "b:81", "s.example:8080", "https://s.example:8080/x", NULL, NULL},
        /* a name of HostHeader, and a Unix socket */
        {"http", "s.example", "", "http", "b:81", "app.example:5", "http://app.example:5/x", "/x", NULL},
        {"http", "s.example", "", "http", "localhost", "s.example", "http://localhost/x", "/x", NULL},
        {"http", "s.example", "", "http", "b:81", "s.example", "https://s.example/x", NULL, NULL},
        /* IPv6 */
        {"http", "[2001:DB8::1]:8080", "", "http", "[::1]:81", "[::1]:81", "http://[2001:db8::1]:8080/x", "/x",
         "http://[::1]:81/x"},
        {"http", "[2001:db8::1]", "", "http", "[::1]:81", "[::1]:81", "http://[2001:db8::1]:80/x", "/x",
         "http://[::1]:81/x"},
        {"http", "[2001:db8::1]", "", "http", "[::1]:81", "[::1]:81", "http://[::1]:81/x", "/x", NULL},
        {"http", "[2001:db8::1]", "", "http", "[::1]:81", "[::1]:81", "http://[::1]/x", NULL, NULL},
        /* a trusted proxy before this server */
        {"https", "inner:80", "s.example", "http", "b:81", "inner:80", "https://s.example/x", "/x",
         "http://inner:80/x"},
        {"http", "inner:80", "s.example", "http", "b:81", "inner:80", "https://s.example/x", NULL, NULL},
        /* HTTP/1.0 without Host */
        {"http", "", "", "http", "b:81", "b:81", "http:///x", NULL, NULL},
        {"http", "", "", "http", "b:81", "b:81", "http://b:81/x", "/x", NULL},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct mapping m = {
            .client = {.scheme = mk_str_c(rows[i].scheme),
                       .authorities = {mk_str_c(rows[i].authority), mk_str_c(rows[i].forwarded)}},
            .backend = {.scheme = mk_str_c(rows[i].to_scheme),
                        .authorities = {mk_str_c(rows[i].host), mk_str_c(rows[i].to)}},
        };
        struct mk_str value = mk_str_c(rows[i].value);
        assert_str_equal(rewrite_location(&m, value, &arena), rows[i].location ? rows[i].location : rows[i].value);
        assert_str_equal(rewrite_destination(&m, value, &arena),
                         rows[i].destination ? rows[i].destination : rows[i].value);
    }
}

/* A host that the client has sent must not begin an attribute. */
TEST(hosts)
{
    static const char *const hosts[] = {"", "a;b", "a b", "a,b", "back.example"};
    struct mapping m = make_mapping("/", false, NULL);
    for (size_t i = 0; i < COUNT(hosts); i++) {
        m.host = mk_str_c(hosts[i]);
        assert_str_equal(rewrite_cookie(&m, MK_STR("a=b;Domain=.back.example"), &arena), "a=b;Domain=.back.example");
    }
    m.host = MK_STR("[::1]");
    assert_str_equal(rewrite_cookie(&m, MK_STR("a=b;Domain=back.example"), &arena), "a=b;Domain=[::1]");
    m.client.authorities[1] = MK_STR("public.example:8443");
    assert_str_equal(rewrite_cookie(&m, MK_STR("a=b;Domain=back.example"), &arena), "a=b;Domain=public.example");
}

TEST(no_memory)
{
    static const struct {
        rewrite_fn rewrite;
        const char *value;
    } rows[] = {
        {rewrite_cookie, "a=b;Path=/;Domain=back.example"},
        {rewrite_location, "/x"},
        {rewrite_refresh, "5; url=/x"},
        {rewrite_link, "</x>"},
    };
    struct mapping m = make_mapping("/a", true, NULL);
    struct mk_arena small;
    mk_arena_init(&small, NULL, 1, NULL, 0);
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_str_equal(rows[i].rewrite(&m, mk_str_c(rows[i].value), &small), rows[i].value);
    mk_arena_release(&small);
}

TEST_FILE(mk_test_arena_open, mk_test_arena_close)
