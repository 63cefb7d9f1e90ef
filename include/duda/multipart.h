// SPDX-License-Identifier: Apache-2.0
/*
 * The object `multipart`: the files of a body of the type multipart/form-data (RFC 7578), as a page sends a form with
 * <input type=file>. Its other fields are pairs of the object `form` (docs/reference/duda/multipart.md).
 */
#ifndef DUDA_MULTIPART_H
#define DUDA_MULTIPART_H

#include "types.h"

/* A file, or a piece of one. Strings end with a NUL and are valid until the request ends. */
struct duda_file {
    const char *name; /* of the field */
    /*
     * Its name at the client, without folders: no slash, no backslash, neither "." nor "..", and no control bytes; may
     * be empty. Another client may send the same one: it is no name to store a file by.
     */
    const char *file_name;
    const char *type; /* as the client says, with parameters; "application/octet-stream" if it says nothing */
    const char *data; /* no NUL follows it */
    size_t len;
};

/*
 * Receives a piece of a file: `file->data` and `file->len`, valid during the call; `file` itself is valid until the
 * last piece of the file, with which `end` is true, and which may be empty.
 */
typedef void (*duda_file_fn)(duda_request_t *dr, const struct duda_file *file, bool end, void *data);

struct duda_api_multipart {
    /*
     * For a route whose handler is called with the whole body; `data` is then part of that, and valid until the request
     * ends. count() returns the number of files: 0 for another type, without a body, and where it is read in pieces;
     * -EBADMSG (it is no valid multipart/form-data), -EINVAL (a NUL in a field), -E2BIG (more than 1,000 parts),
     * -EMSGSIZE (more than 4 KB before the content of one) or -ENOMEM. A field for which no file was chosen has none.
     */
    int (*count)(duda_request_t *dr);
    /* Returns the first file of a field; NULL: there is none. */
    const struct duda_file *(*get)(duda_request_t *dr, const char *name);
    /* Returns the n-th file, from 0; NULL: there are not that many. */
    const struct duda_file *(*get_id)(duda_request_t *dr, int n);
    /* Returns the files of a field with several, one for each call; then NULL. `*at` is 0 before the first call. */
    const struct duda_file *(*next)(duda_request_t *dr, const char *name, int *at);
    /*
     * For a route with stream_body(): passes files to `fn` as they arrive, one after the other, and calls `end` after
     * the last one. Neither is called after the response has ended. Fields that came before a piece are in the object
     * `form`; of names and fields 256 KB are kept. request->pause() has the client wait: what has arrived already still
     * comes, and so may `end`.
     * A body of more than `bytes_max` bytes (0: MaxBodySize of the server) gets 413, as more text and parts do, and one
     * that is no valid multipart/form-data 400: the request ends then, and `end` is not called, see
     * request->on_leave().
     * Returns 0, -ENOTSUP (Content-Type is another one, or has no valid boundary; 415 is the response for it),
     * -EALREADY (the body is read already, or the response has ended), -EINVAL (a function is NULL; or in a callback
     * before the handler, for which the body is collected) or -ENOMEM.
     */
    int (*read)(duda_request_t *dr, uint64_t bytes_max, duda_file_fn fn, duda_event_fn end, void *data);
};

DUDA_OBJECT(struct duda_api_multipart, multipart)

#endif
