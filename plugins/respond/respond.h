// SPDX-License-Identifier: Apache-2.0
#ifndef RESPOND_RESPOND_H
#define RESPOND_RESPOND_H

#include <monkey/conf.h>
#include <monkey/kit/when.h>
#include <monkey/plugin.h>

struct respond_headers {
    struct mk_header_field *items; /* all lines */
    uint32_t n;
    struct mk_str type; /* Content-Type, which one of them may have; else `.p` is NULL */
    uint32_t nth_type, bytes;
};

/* A section. It lives as long as the generation. */
struct respond_rule {
    struct mk_pattern match;
    struct mk_when when;
    int64_t status;
    struct respond_headers headers;
    struct mk_str text, file; /* `.p` NULL: not given */
};

static inline bool respond_is_type(struct mk_str name)
{
    return mk_str_ieq(name, MK_STR("Content-Type"));
}

enum respond_counter { RESPOND_RESPONSES, RESPOND_FAILED_FILE, RESPOND_FAILED_PATTERN, RESPOND_COUNTERS };

/* Adds 1 to a counter. In the thread of the request's worker. */
void respond_count(const struct mk_request *req, enum respond_counter counter);

/*
 * Opens a file for reading. `resolve`: RESOLVE_CACHED, or 0 (may block). Returns a descriptor or -errno, as
 * mk_file_openat2(). Any thread.
 */
int respond_open_file(const char *path, uint64_t resolve);

/* Sends the answer of a rule, at once or after a disk thread has opened its file. */
void respond_send(struct mk_request *req, const struct respond_rule *r);

#endif
