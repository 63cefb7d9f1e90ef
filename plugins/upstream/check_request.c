// SPDX-License-Identifier: Apache-2.0
/*
 * Writes the requests of checks (check_request.h).
 */
#include "check_request.h"

#include <monkey/fastcgi.h>

enum { NAME_BYTES_MAX = 256 };

#define USER_AGENT "monkey (check)"

static void write_http(const struct check_conf *conf, struct mk_str host, struct mk_buf *out)
{
    mk_buf_addf(out, "%.*s %.*s HTTP/1.1\r\nHost: %.*s\r\nUser-Agent: " USER_AGENT "\r\nConnection: close\r\n",
                MK_STR_ARG(conf->method), MK_STR_ARG(conf->what.path), MK_STR_ARG(host));
    for (uint32_t i = 0; i < conf->headers.n; i++)
        mk_buf_adds(out, conf->headers.lines[i]);
    mk_buf_adds(out, MK_STR("\r\n"));
}

/* ── FastCGI ── */

/* Writes the variable of a line "NAME: VALUE\r\n", as HTTP_NAME. */
static void write_header(struct mk_str line, struct mk_buf *out)
{
    char name[NAME_BYTES_MAX];
    size_t len = (size_t)((const char *)memchr(line.p, ':', line.len) - line.p);
    size_t n = mk_cgi_header_variable(mk_str(line.p, len), name, sizeof(name));
    mk_fastcgi_add_pair(mk_str(name, n), mk_str_trim(mk_str(line.p + len + 1, line.len - len - 3)), out);
}

static struct mk_str get_name(struct mk_str host)
{
    const char *colon = memrchr(host.p, ':', host.len);
    bool has_port = colon && !memchr(colon, ']', host.len - (size_t)(colon - host.p));
    return has_port ? mk_str(host.p, (size_t)(colon - host.p)) : host;
}

static void write_fastcgi(const struct check_conf *conf, struct mk_str host, struct mk_buf *out)
{
    struct mk_str uri = conf->what.path, query = uri, path = mk_str_split(&query, '?');
    const struct {
        struct mk_str name, value;
    } rows[] = {
        {MK_STR("GATEWAY_INTERFACE"), MK_STR("CGI/1.1")},
        {MK_STR("SERVER_SOFTWARE"), MK_STR("monkey")},
        {MK_STR("SERVER_PROTOCOL"), MK_STR("HTTP/1.1")},
        {MK_STR("SERVER_NAME"), get_name(host)},
        {MK_STR("REQUEST_METHOD"), conf->method},
        {MK_STR("REQUEST_URI"), uri},
        {MK_STR("QUERY_STRING"), query},
        {MK_STR("SCRIPT_NAME"), path},
        {MK_STR("SCRIPT_FILENAME"), path},
        {MK_STR("REDIRECT_STATUS"), MK_STR("200")},
        {MK_STR("HTTP_HOST"), host},
        {MK_STR("HTTP_USER_AGENT"), MK_STR(USER_AGENT)},
    };
    size_t params = mk_fastcgi_begin(out, false);
    for (size_t i = 0; i < MK_COUNT_OF(rows); i++)
        mk_fastcgi_add_pair(rows[i].name, rows[i].value, out);
    for (uint32_t i = 0; i < conf->headers.n; i++)
        write_header(conf->headers.lines[i], out);
    mk_fastcgi_end_params(out, params); /* fits: the limits of the keys are below that of a record */
    mk_fastcgi_add_header(out, MK_FASTCGI_STDIN, 0);
}

void check_request_write(const struct check_conf *conf, struct mk_str host, struct mk_buf *out)
{
    if (conf->what.kind == CHECK_FASTCGI)
        write_fastcgi(conf, host, out);
    else
        write_http(conf, host, out);
}
