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

static void change(struct mk_request *req)
{
    struct mk_str type = mk_response_get_header(req, MK_STR("Content-Type"));
    uint64_t bytes;
    bool known = mk_response_get_length(req, &bytes);
    if (!mk_str_starts(type, MK_STR("text/plain")) || mk_response_get_status(req) == 206)
        return; /* a part of a text is left alone: its bytes are counted already */
    if (mk_response_filter(req, raise, NULL) < 0)
        return;
    if (known)
        mk_response_set_length(req, bytes);         /* capitals are as long as small letters */
    mk_response_header_remove(req, MK_STR("ETag")); /* these are other bytes than the tag was made for */
    mk_response_header_remove(req, MK_STR("Accept-Ranges"));
}

MK_PLUGIN(shout) = {
    MK_PLUGIN_HEAD("shout", "1.0", "text in capital letters"),
    .on_response = change,
};
