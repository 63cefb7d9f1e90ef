// SPDX-License-Identifier: Apache-2.0
/*
 * What a connection begins with, where HTTP/1 and HTTP/2 share a port. Pure. Builds for small devices know one only.
 */
#ifndef MK_HTTP_MESSAGE_PREFACE_H
#define MK_HTTP_MESSAGE_PREFACE_H

#include "http/message/parse.h"

enum mk__preface { MK__PREFACE_NONE, MK__PREFACE_PARTIAL, MK__PREFACE_WHOLE };

/* Is it the preface of HTTP/2 (RFC 9113 section 3.4), or may it become that? `in` is not empty. */
enum mk__preface mk__preface_check(struct mk_str in);

/*
 * A first line that could not be read, of three words of which none is HTTP's: whoever speaks another protocol gets no
 * answer, which something could be made of.
 */
bool mk__preface_is_other_protocol(const struct mk__parse *p, struct mk_str in);

#endif
