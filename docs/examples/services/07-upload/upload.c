// SPDX-License-Identifier: Apache-2.0
/*
 * upload: stores a body of any size in the folder of data, piece by piece, so that it never needs more memory than one
 * piece. PUT /upload/NAME; a file appears under its name only when it is complete.
 */
#define _GNU_SOURCE // O_TMPFILE
#include <duda/duda.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

DUDA_REGISTER("Duda I/O examples", "upload");

enum { UPLOAD_BYTES_MAX = 1 << 30 };

struct upload {
    int fd;
    size_t bytes;
    char path[512];
};

static void free_upload(void *ptr)
{
    struct upload *u = ptr;
    if (u->fd >= 0)
        close(u->fd);
    free(u);
}

/* Gives the complete file its name. Returns 0 or -errno. */
static int name_file(const struct upload *u)
{
    char self[64];
    snprintf(self, sizeof(self), "/proc/self/fd/%d", u->fd);
    unlink(u->path);
    return linkat(AT_FDCWD, self, AT_FDCWD, u->path, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

static int write_all(int fd, const char *p, size_t len)
{
    while (len) {
        ssize_t n = write(fd, p, len);
        if (n < 0)
            return -errno;
        p += n;
        len -= (size_t)n;
    }
    return 0;
}

static void store_piece(duda_request_t *dr, const char *piece, size_t len, bool end, void *data)
{
    struct upload *u = data;
    if (write_all(u->fd, piece, len) < 0 || (end && name_file(u) < 0)) {
        response->error(dr, 507);
        return;
    }
    u->bytes += len;
    if (!end)
        return;
    response->http_status(dr, 201);
    response->printf(dr, "%zu bytes\n", u->bytes);
    response->end(dr, NULL);
}

static void begin_upload(duda_request_t *dr)
{
    const char *path = data->locate(dr, param->get(dr, "name"));
    struct upload *u = calloc(1, sizeof(*u));
    if (!u || gc->add_destroy(dr, u, free_upload) < 0) {
        free(u);
        response->error(dr, 503);
        return;
    }
    u->fd = path ? open(data->get_path(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600) : -1;
    if (u->fd < 0 || strlen(path) >= sizeof(u->path)) {
        response->error(dr, path ? 507 : 400);
        return;
    }
    memcpy(u->path, path, strlen(path) + 1);
    request->read(dr, UPLOAD_BYTES_MAX, store_piece, u);
}

int duda_main(void)
{
    struct duda_route *route = router->put("/:name", begin_upload);
    return route && router->stream_body(route) == 0 ? 0 : -1;
}
