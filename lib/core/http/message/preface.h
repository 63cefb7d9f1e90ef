// SPDX-License-Identifier: Apache-2.0
/*
 * Recognizes the protocol of a connection by its first bytes, where HTTP/1 and HTTP/2 share a port. Pure.
 */
#ifndef MK_HTTP_MESSAGE_PREFACE_H
#define MK_HTTP_MESSAGE_PREFACE_H

#include "http/message/parse.h"

enum mk__preface { MK__PREFACE_NONE, MK__PREFACE_PARTIAL, MK__PREFACE_WHOLE };

/* Tells whether `in`, which must not be empty, is the HTTP/2 preface (RFC 9113 section 3.4) or the beginning of it. */
enum mk__preface mk__preface_check(struct mk_str in);

/*
 * Tells whether a first line that could not be parsed belongs to another protocol: three words without "/", ":" and
 * "*", and an unknown method. Such a client gets no response, which its protocol might interpret in some way.
 */
bool mk__preface_is_other_protocol(const struct mk_head_parser *p, struct mk_str in);

#endif
