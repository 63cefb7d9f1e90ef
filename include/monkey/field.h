// SPDX-License-Identifier: Apache-2.0
/*
 * The field names that the server itself reads in requests. A handler asks for these by number, and for
 * every other field by name (<monkey/request.h>).
 */
#ifndef MONKEY_FIELD_H
#define MONKEY_FIELD_H

enum mk_field {
    MK_FIELD_OTHER,
    MK_FIELD_ACCEPT,
    MK_FIELD_ACCEPT_ENCODING,
    MK_FIELD_AUTHORIZATION,
    MK_FIELD_CONNECTION,
    MK_FIELD_CONTENT_LENGTH,
    MK_FIELD_CONTENT_TYPE,
    MK_FIELD_COOKIE,
    MK_FIELD_EXPECT,
    MK_FIELD_HOST,
    MK_FIELD_IF_MATCH,
    MK_FIELD_IF_MODIFIED_SINCE,
    MK_FIELD_IF_NONE_MATCH,
    MK_FIELD_IF_RANGE,
    MK_FIELD_IF_UNMODIFIED_SINCE,
    MK_FIELD_ORIGIN,
    MK_FIELD_RANGE,
    MK_FIELD_REFERER,
    MK_FIELD_TE,
    MK_FIELD_TRANSFER_ENCODING,
    MK_FIELD_UPGRADE,
    MK_FIELD_USER_AGENT,
    MK_FIELD_COUNT,
};

#endif
