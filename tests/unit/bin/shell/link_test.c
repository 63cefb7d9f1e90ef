// SPDX-License-Identifier: Apache-2.0
/* Commands as the server reads them: words with any bytes. */
#include "testing.h"

#include "bin/shell/shell.h"

TEST(words_keep_their_bytes)
{
    char plain[] = "cache", path[] = "/caf\xe9 \"\\\n", *words[] = {plain, path};
    MK_BUF_ON_STACK(out, 100);
    link_add_words(&out, words, 2);
    assert_str_equal(mk_buf_str(&out), "[\"cache\",\"/caf\xe9 \\\"\\\\\\u000a\"]");
    out.len = 0;
    link_add_words(&out, words, 0);
    assert_str_equal(mk_buf_str(&out), "[]");
}
