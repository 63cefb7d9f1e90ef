// SPDX-License-Identifier: Apache-2.0
/*
 * Names of the headers that the server itself reads in requests. mk_request_header() finds these by number, which is
 * fast; mk_request_header_by_name() finds any other (<monkey/request.h>).
 */
#ifndef MONKEY_HEADER_ID_H
#define MONKEY_HEADER_ID_H

enum mk_header_id {
    MK_HEADER_OTHER,
    MK_HEADER_ACCEPT,
    MK_HEADER_ACCEPT_ENCODING,
    MK_HEADER_AUTHORIZATION,
    MK_HEADER_CONNECTION,
    MK_HEADER_CONTENT_LENGTH,
    MK_HEADER_CONTENT_TYPE,
    MK_HEADER_COOKIE,
    MK_HEADER_EXPECT,
    MK_HEADER_HOST,
    MK_HEADER_IF_MATCH,
    MK_HEADER_IF_MODIFIED_SINCE,
    MK_HEADER_IF_NONE_MATCH,
    MK_HEADER_IF_RANGE,
    MK_HEADER_IF_UNMODIFIED_SINCE,
    MK_HEADER_ORIGIN,
    MK_HEADER_RANGE,
    MK_HEADER_REFERER,
    MK_HEADER_TE,
    MK_HEADER_TRANSFER_ENCODING,
    MK_HEADER_UPGRADE,
    MK_HEADER_USER_AGENT,
    MK_HEADER_COUNT,
};

#endif
