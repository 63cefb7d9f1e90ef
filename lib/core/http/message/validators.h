// SPDX-License-Identifier: Apache-2.0
/*
 * Entity tags and conditional requests (RFC 9110 sections 8.8 and 13). Pure.
 */
#ifndef MK_HTTP_MESSAGE_VALIDATORS_H
#define MK_HTTP_MESSAGE_VALIDATORS_H

#include <stdint.h>

#include <monkey/base/str.h>

enum {
    MK__ETAG_BYTES = 40,        /* W/ "16 hex - 16 hex" NUL, rounded up */
    MK__ETAG_STRONG_SECONDS = 2 /* the age from which the validators of a file are strong */
};

/* A resource without a modification date. */
#define MK__MTIME_NONE INT64_MIN

/*
 * Writes `"size-number"` (hexadecimal) and a NUL, after W/ if `weak` or `version` is 0. The number is that of the time
 * (in nanoseconds) and the version, as in struct mk_file; of a version 0 it is the time, so that copies of a file have
 * the same tag on every machine. Returns the length without the NUL.
 */
size_t mk__validators_format_etag(uint64_t size, int64_t mtime_s, uint32_t mtime_ns, uint64_t version, bool weak,
                                  char out[MK__ETAG_BYTES]);

/*
 * Tells whether the list of If-Match or If-None-Match is `*` or contains `etag`, as formatted above. The strong
 * comparison does not match weak tags. A list with a malformed element matches nothing.
 */
bool mk__validators_match_etags(struct mk_str list, struct mk_str etag, bool strong);

/* The preconditions of GET or HEAD and the validators of the resource. `p` of a field that is absent is NULL. */
struct mk__conditions {
    struct mk_str if_match, if_none_match, if_modified_since, if_unmodified_since;
    struct mk_str etag; /* may be absent */
    int64_t mtime;      /* as sent in Last-Modified, or MK__MTIME_NONE */
    int64_t now;
};

enum mk__condition {
    MK__CONDITION_PASS,
    MK__CONDITION_NOT_MODIFIED, /* 304 */
    MK__CONDITION_FAILED,       /* 412 */
};

/*
 * Evaluates the preconditions in the order of section 13.2.2, without If-Range. Malformed dates are ignored.
 */
enum mk__condition mk__validators_check(const struct mk__conditions *in);

/*
 * Tells whether an If-Range field permits the Range: by the same strong tag, or by the same Last-Modified, if that is a
 * strong validator (section 8.8.2.2). A weak tag or a malformed value does not.
 */
bool mk__validators_check_if_range(struct mk_str value, struct mk_str etag, int64_t mtime, int64_t now);

#endif
