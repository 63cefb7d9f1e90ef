// SPDX-License-Identifier: Apache-2.0
/*
 * Files as parts of a response.
 */
#ifndef DUDA_CORE_REQUEST_SEND_FILE_H
#define DUDA_CORE_REQUEST_SEND_FILE_H

#include <stdint.h>
#include <sys/types.h>

struct duda_request;

/* Adds `len` bytes of a file from `offset`; 0: up to its end. Returns as response->sendfile_range(). */
int send_file_add(struct duda_request *dr, const char *path, off_t offset, size_t len);

/*
 * Checks a range of a file of `size` bytes; `len` 0: up to its end. Returns 0 with the length, or -ERANGE. Pure.
 */
int send_file_check_range(uint64_t size, off_t offset, size_t len, uint64_t *ret_len);

#endif
