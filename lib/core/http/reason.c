// SPDX-License-Identifier: Apache-2.0
/*
 * Why a request is refused: the table of <monkey/request.h>.
 */
#include "http/request.h"

#include <assert.h>

static const struct mk_reason_info rows[] = {
    [MK_REASON_MISSING] = {"missing", NULL, 404},
    [MK_REASON_HIDDEN] =
        {"hidden",
         "a name in it begins with a dot, which DotFiles Off hides: write \"DotFiles On\" in [HOST] to "
         "send all such files",
         404},
    [MK_REASON_LINK] =
        {"link",
         "it is reached by a symbolic link, which SymLink Off does not follow: write \"SymLink Inside\" in "
         "[HOST], or \"SymLink On\" if the link leaves the folder",
         404},
    [MK_REASON_LINK_OUTSIDE] =
        {"link-outside",
         "it is reached by a symbolic link that leaves the folder, which SymLink Inside does not "
         "follow: write \"SymLink On\" in [HOST], or an [ALIAS] for the target",
         404},
    [MK_REASON_LINK_CIRCLE] = {"link-circle", "it is reached by symbolic links that lead in a circle: mend them", 404},
    [MK_REASON_NO_INDEX] = {"no-index",
                            "the folder has no file that Indexfile names: add one, name another in [HOST], or list the "
                            "folder by [DIRLISTING]",
                            404},
    [MK_REASON_NO_FILE] = {"no-file", "it is a device, a pipe or a socket, and these are not sent", 404},
    [MK_REASON_SOURCE] =
        {"source",
         "it is a program that another section runs, and never sent as a file: its Match or Split does "
         "not take this request",
         404},
    [MK_REASON_NAME_TOO_LONG] = {"name-too-long", NULL, 404},
    [MK_REASON_PERMISSION] =
        {"permission",
         "the user of the server may not read it, or not search a folder above it: `namei -l` shows "
         "which, chmod permits it",
         403},
    [MK_REASON_METHOD] = {"method",
                          "files are sent for GET and HEAD; another method needs a section such as [PROXY], [CGI] or "
                          "[FASTCGI] whose Match has this path",
                          405},
    [MK_REASON_BODY] =
        {"body-too-large",
         "the body is larger than MaxBodySize: raise it in [SERVER] or [HOST], or for some paths in [LIMITS]", 413},
    [MK_REASON_COLLECTED_BODY] =
        {"collected-body-too-large",
         "a handler collects the body in memory, and it is larger than MaxRequestSize: raise that "
         "in [SERVER] or [HOST], or for some paths in [LIMITS]",
         413},
    [MK_REASON_ENCODED_SLASH] =
        {"encoded-slash",
         "it has an encoded slash, which the section for it refuses: write \"EncodedSlash Keep\" or \"EncodedSlash "
         "Decode\" there",
         404},
};

void mk_request_set_reason(struct mk_request *req, enum mk_reason reason)
{
    assert(reason < MK_REASON_COUNT);
    req->reason = (uint8_t)reason;
}

enum mk_reason mk_request_reason(const struct mk_request *req)
{
    return rows[req->reason].status == mk_response_get_status(req) ? req->reason : MK_REASON_NONE;
}

const struct mk_reason_info *mk_reason_info(enum mk_reason reason)
{
    static_assert(MK_COUNT_OF(rows) == MK_REASON_COUNT, "each reason has a row");
    assert(reason < MK_REASON_COUNT);
    return &rows[reason];
}
