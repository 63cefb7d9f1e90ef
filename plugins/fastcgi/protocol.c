// SPDX-License-Identifier: Apache-2.0
/*
 * The tables of the two protocols (protocol.h).
 */
#include "protocol.h"

#include "request.h"
#include "response.h"

#include <errno.h>

static const char *find_advice(bool is_dial, int err)
{
    static const struct {
        bool is_dial;
        int err;
        const char *text;
    } rows[] = {
        {true, ENOENT,
         "start the server that makes this socket, or correct To; if it is that of Spawn, its "
         "folder was removed: restart this server"},
        {true, ECONNREFUSED, "start the server that listens there, or correct To"},
        {true, EACCES, "let the user of this server write to the socket (listen.owner and listen.group of php-fpm)"},
        {true, ETIMEDOUT,
         "all of its processes may be busy and its queue full: see pm.max_children and listen.backlog "
         "of php-fpm, or set MaxConnections and Queue"},
        {false, ETIMEDOUT,
         "see what it waits for (request_slowlog_timeout and pm.max_children of php-fpm), or raise "
         "ResponseTimeout or ReadTimeout"},
    };
    for (size_t i = 0; i < MK_COUNT_OF(rows); i++)
        if (rows[i].is_dial == is_dial && rows[i].err == -err)
            return rows[i].text;
    return NULL;
}

static int write_fastcgi(const struct mk_gateway_call *c, const struct mk_gateway_body *body, struct mk_buf *out)
{
    response_begin(c);
    return request_write_fastcgi(c, body, out);
}

static int write_scgi(const struct mk_gateway_call *c, const struct mk_gateway_body *body, struct mk_buf *out)
{
    response_begin(c);
    return request_write_scgi(c, body, out);
}

const struct mk_gateway_protocol fastcgi_protocol = {
    .name = "fastcgi",
    .state_bytes = sizeof(struct fastcgi_response),
    .needs_length = true,
    .length_frames = &request_stdin,
    .chunked_frames = &request_stdin,
    .abort = MK_STR_INIT("\1\2\0\1\0\0\0\0"), /* FCGI_ABORT_REQUEST */
    .write_head = write_fastcgi,
    .unwrap = response_unwrap,
    .keeps_conn = response_keeps_conn,
    .parse_head = response_parse_head,
    .pass_header = response_pass_header,
    .describe_fault = response_describe_fault,
    .advise = find_advice,
};

const struct mk_gateway_protocol scgi_protocol = {
    .name = "scgi",
    .state_bytes = sizeof(struct fastcgi_response),
    .needs_length = true,
    .write_head = write_scgi,
    .parse_head = response_parse_head,
    .pass_header = response_pass_header,
    .describe_fault = response_describe_fault,
    .advise = find_advice,
};
