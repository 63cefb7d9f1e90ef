// SPDX-License-Identifier: Apache-2.0
/*
 * Request targets, authorities and paths (RFC 9112 section 3.2, RFC 3986). Everything here is pure; spans
 * point into the caller's bytes.
 */
#ifndef MK_HTTP_MESSAGE_URI_H
#define MK_HTTP_MESSAGE_URI_H

#include <stdint.h>
#include <sys/types.h>

#include <monkey/str.h>

enum mk__uri_form { MK__URI_ORIGIN, MK__URI_ABSOLUTE, MK__URI_AUTHORITY, MK__URI_ASTERISK };

struct mk__uri_parts {
    enum mk__uri_form form;
    bool has_query;          /* a '?' was there, the query may still be empty */
    struct mk_str scheme;    /* absolute form only, as it was written */
    struct mk_str authority; /* absolute and authority form; wins over Host */
    struct mk_str path;      /* raw, starts with '/'; empty in the authority and asterisk forms */
    struct mk_str query;     /* without the '?' */
};

/*
 * Splits a request target. The authority form belongs to CONNECT alone (and must name a port), the
 * asterisk form to OPTIONS. An absolute form (http and https) with an empty path has the path "/", a
 * constant; with OPTIONS and no query it is the asterisk form, its authority kept (section 3.2.4).
 * -EINVAL: any other form, a byte that is not visible ASCII, a fragment, an authority that is not
 * valid, is empty or holds user information. Percent-escapes are not looked at.
 */
int mk__uri_split_target(struct mk_str method, struct mk_str target, struct mk__uri_parts *ret);

enum mk__host_kind { MK__HOST_EMPTY, MK__HOST_NAME, MK__HOST_V4, MK__HOST_V6 };

struct mk__uri_host_port {
    enum mk__host_kind kind;
    bool has_port;      /* a port with at least one digit */
    uint16_t port;      /* 0 without one */
    struct mk_str name; /* as it was written; an IPv6 literal keeps its brackets */
};

/*
 * Splits `host [":" port]`, as a Host field (OWS already trimmed) or a target's authority carries it.
 * The port may be empty. An empty value is MK__HOST_EMPTY; an empty name with a port is not valid.
 * -EINVAL: user information, a malformed or future IP literal, a zone, a malformed escape, a port
 * above 65535, and any byte that a name cannot have.
 */
int mk__uri_split_authority(struct mk_str host, struct mk__uri_host_port *ret);

/*
 * Decodes the percent-escapes of a raw path once, then normalizes: `//` becomes `/`, the segments "."
 * and ".." disappear (however they were written) and never climb above the root. The result starts with
 * '/', keeps a trailing slash when the last segment was empty, "." or "..", and is NUL-terminated.
 * Its length, or
 *   -EINVAL        no leading '/', a malformed escape, a NUL
 *   -ENOENT        an encoded slash inside a segment: no file can have that name
 *   -ENAMETOOLONG  `size` bytes do not hold the result and its NUL (or a part that a ".." drops later)
 */
ssize_t mk__uri_decode_path(struct mk_str raw, char *out, size_t size);

#endif
