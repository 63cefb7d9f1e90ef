// SPDX-License-Identifier: Apache-2.0
/*
 * Entity tags and conditional requests (RFC 9110 sections 8.8 and 13). Pure.
 */
#ifndef MK_HTTP_MESSAGE_VALIDATORS_H
#define MK_HTTP_MESSAGE_VALIDATORS_H

#include <stdint.h>

#include <monkey/str.h>

enum {
    MK__ETAG_BYTES = 40,        /* W/ "16 hex - 16 hex" NUL, rounded up */
    MK__ETAG_STRONG_SECONDS = 2 /* a file untouched for so long has strong validators */
};

/* A resource without a modification date. */
#define MK__MTIME_NONE INT64_MIN

/*
 * Writes `"size-mtime"` (hexadecimal, the time in nanoseconds), with W/ before it when weak, and a NUL.
 * Its length. The same file has the same tag on every machine.
 */
size_t mk__validators_format_etag(uint64_t size, int64_t mtime_s, uint32_t mtime_ns, bool weak,
                                  char out[MK__ETAG_BYTES]);

/*
 * Whether the list of If-Match or If-None-Match names `etag` (as formatted above) or is `*`. The strong
 * comparison matches no weak tag. A list that is garbled anywhere matches nothing.
 */
bool mk__validators_match_etags(struct mk_str list, struct mk_str etag, bool strong);

/* What a request asks for, and what the selected resource is. A field that is absent has no `p`. */
struct mk__conditions {
    bool get_or_head;
    struct mk_str if_match, if_none_match, if_modified_since, if_unmodified_since;
    struct mk_str etag; /* may be absent */
    int64_t mtime;      /* as Last-Modified says it, or MK__MTIME_NONE */
    int64_t now;
};

enum mk__condition {
    MK__CONDITION_PASS,
    MK__CONDITION_NOT_MODIFIED, /* 304 */
    MK__CONDITION_FAILED,       /* 412 */
};

/*
 * Evaluates the preconditions in the order of section 13.2.2; If-Range comes after it. Dates that are
 * not valid are ignored.
 */
enum mk__condition mk__validators_check(const struct mk__conditions *in);

/*
 * Whether an If-Range field lets the Range apply: the same strong tag, or exactly the Last-Modified of a
 * resource that is settled (section 8.8.2.2). A weak tag or a garbled value never does.
 */
bool mk__validators_check_if_range(struct mk_str value, struct mk_str etag, int64_t mtime, int64_t now);

#endif
