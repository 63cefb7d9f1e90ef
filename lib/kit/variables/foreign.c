// SPDX-License-Identifier: Apache-2.0
/*
 * Variables of other servers, and the ones to write here (<monkey/kit/variables.h>).
 */
#include <monkey/kit/variables.h>

static const struct {
    struct mk_str name;
    const char *here;
} variables[] = {
    {MK_STR("remote_addr"), "client"},
    {MK_STR("remote_host"), "client"},
    {MK_STR("binary_remote_addr"), "client"},
    {MK_STR("realip_remote_addr"), "peer"},
    {MK_STR("remote_user"), "user"},
    {MK_STR("time_local"), "time_clf"},
    {MK_STR("msec"), "time_unix_ms"},
    {MK_STR("request_method"), "method"},
    {MK_STR("request_uri"), "target"},
    {MK_STR("uri"), "path"},
    {MK_STR("document_uri"), "path"},
    {MK_STR("args"), "query"},
    {MK_STR("query_string"), "query"},
    {MK_STR("server_name"), "host"},
    {MK_STR("http_host"), "host"},
    {MK_STR("server_protocol"), "protocol"},
    {MK_STR("body_bytes_sent"), "body_bytes_out"},
    {MK_STR("bytes_sent"), "bytes_out"},
    {MK_STR("request_length"), "bytes_in"},
    {MK_STR("http_referer"), "referer"},
    {MK_STR("http_user_agent"), "agent"},
    {MK_STR("request_time"), "request_time_us"},
    {MK_STR("upstream_response_time"), "first_byte_us"},
    {MK_STR("ssl_protocol"), "tls_version"},
    {MK_STR("ssl_cipher"), "tls_cipher"},
    {MK_STR("ssl_server_name"), "tls_server_name"},
    {MK_STR("ssl_client_s_dn"), "tls_client"},
    {MK_STR("http_x_forwarded_for"), "header_x_forwarded_for"},
};

const char *mk_variable_find_foreign(struct mk_str name)
{
    for (size_t i = 0; i < MK_COUNT_OF(variables); i++)
        if (mk_str_ieq(name, variables[i].name))
            return variables[i].here;
    return NULL;
}
