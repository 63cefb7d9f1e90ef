// SPDX-License-Identifier: Apache-2.0
/*
 * The Huffman code of HPACK strings (RFC 7541 section 5.2, appendix B). Pure.
 */
#ifndef MK_HTTP_H2_HUFFMAN_H
#define MK_HTTP_H2_HUFFMAN_H

#include <monkey/base/str.h>

#include <sys/types.h>

/* Returns how many bytes mk__huffman_encode() writes. */
size_t mk__huffman_encoded_len(struct mk_str s);
/* Writes the encoded string to `to`. Returns its end. */
char *mk__huffman_encode(char *to, struct mk_str s);
/*
 * Writes the decoded string to `to`, or as many bytes of it as there is room for.
 * Returns its length, which may exceed `size`, or -EINVAL: the padding is not the beginning of the end-of-string
 * symbol, is eight bits or longer, or the whole symbol occurs.
 */
ssize_t mk__huffman_decode(struct mk_str in, char *to, size_t size);

#endif
