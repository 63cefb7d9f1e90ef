// SPDX-License-Identifier: Apache-2.0
/*
 * shout: a response filter. Text leaves in capital letters, whoever made it, and whatever it is made of: files, memory,
 * pieces that come one after the other.
 */
#include <monkey/plugin.h>

#include <ctype.h>

static ssize_t raise(struct mk_filter *filter, char *to, size_t size, void *ctx)
{
    ssize_t n = mk_filter_read(filter, to, size); /* below zero: nothing yet, others first, or a failure */
    (void)ctx;
    for (ssize_t i = 0; i < n; i++)
        to[i] = (char)toupper((unsigned char)to[i]);
    return n;
}

/* A part of a text would not be seen by the filter as text: several of them are sent as multipart/byteranges. Nor would
 * one that is compressed. */
static int ask_for_text(struct mk_request *req)
{
    if (mk_str_starts(mk_request_mime(req, mk_request_path(req)), MK_STR("text/plain"))) {
        mk_response_no_ranges(req);
        mk_response_no_codings(req);
    }
    return MK_DECLINED;
}

static void change(struct mk_request *req)
{
    struct mk_str type = mk_response_get_header(req, MK_STR("Content-Type"));
    uint64_t bytes;
    bool is_encoded = mk_response_get_header(req, MK_STR("Content-Encoding")).p;
    if (!mk_str_starts(type, MK_STR("text/plain")) || is_encoded || mk_response_no_ranges(req) < 0)
        return; /* a part that a handler has made is left alone */
    bool known = mk_response_get_length(req, &bytes);
    if (mk_response_filter(req, raise, NULL) < 0)
        return;
    if (known)
        mk_response_set_length(req, bytes);         /* capitals are as long as small letters */
    mk_response_header_remove(req, MK_STR("ETag")); /* these are other bytes than the tag was made for */
}

MK_PLUGIN(shout) = {
    MK_PLUGIN_HEAD("shout", "1.0", "text in capital letters"),
    .on_request = ask_for_text,
    .on_response = change,
};
