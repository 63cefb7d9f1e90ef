// SPDX-License-Identifier: Apache-2.0
/*
 * Request targets, authorities and paths (RFC 9112 section 3.2, RFC 3986). Pure; spans point into the bytes of the
 * caller.
 */
#ifndef MK_HTTP_MESSAGE_URI_H
#define MK_HTTP_MESSAGE_URI_H

#include <stdint.h>
#include <sys/types.h>

#include <monkey/base/str.h>

enum mk__uri_form { MK__URI_ORIGIN, MK__URI_ABSOLUTE, MK__URI_AUTHORITY, MK__URI_ASTERISK };

struct mk__uri_parts {
    enum mk__uri_form form;
    bool has_query;          /* there was a '?'; the query may be empty */
    struct mk_str scheme;    /* absolute form only, in its original case */
    struct mk_str authority; /* absolute and authority form; takes precedence over Host */
    struct mk_str path;      /* raw, starts with '/'; empty in the authority and asterisk forms */
    struct mk_str query;     /* without the '?' */
};

/*
 * Splits a request target. The authority form is for CONNECT only and must have a port, the asterisk form is for
 * OPTIONS only. An absolute form (http or https) with an empty path gets the path "/", a constant; with OPTIONS and
 * without a query it becomes the asterisk form and keeps its authority (section 3.2.4). Percent-escapes are not
 * checked. Returns 0 or -EINVAL: any other form, a byte that is not visible ASCII, a fragment, an authority that is
 * malformed, is empty or contains user information.
 */
int mk__uri_split_target(struct mk_str method, struct mk_str target, struct mk__uri_parts *ret);

enum mk__host_kind { MK__HOST_EMPTY, MK__HOST_NAME, MK__HOST_V4, MK__HOST_V6 };

struct mk__uri_host_port {
    enum mk__host_kind kind;
    bool has_port;      /* a port with at least one digit */
    uint16_t port;      /* 0 without one */
    struct mk_str name; /* in its original case; an IPv6 literal with its brackets */
};

/*
 * Splits `host [":" port]` of a Host field (without OWS) or of the authority of a target. The port may be empty. An
 * empty value is MK__HOST_EMPTY; an empty name with a port is an error. Returns 0 or -EINVAL: user information, a
 * malformed or future IP literal, a zone, a malformed escape, a port above 65535, a byte that is not allowed in a name.
 */
int mk__uri_split_authority(struct mk_str host, struct mk__uri_host_port *ret);

/*
 * Decodes the percent-escapes of a raw path once, then normalizes it: `//` becomes `/`, and the segments "." and "..",
 * escaped or not, are removed without leaving the root. The result starts with '/', has a trailing slash if the last
 * segment was empty, "." or "..", and is followed by a NUL. Returns its length or
 *   -EINVAL        no leading '/', a malformed escape, a NUL
 *   -ENOENT        an encoded slash in a segment: no file can have that name
 *   -ENAMETOOLONG  `size` is too small for the result and its NUL, or for a segment that a ".." removes later
 */
ssize_t mk__uri_decode_path(struct mk_str raw, char *out, size_t size);

#endif
