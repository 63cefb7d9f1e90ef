// SPDX-License-Identifier: Apache-2.0
/* The manual: complete, in a stable order, with what the rows say. */
#include "testing.h"

#include "conf/sample.h"

/* Pieces that must follow each other in this order. */
static const char *const pieces[] = {
    "# Configuration\n\n",
    "\n## How a file is written\n\n",
    "\n## `[SERVER]`\n\nIn `monkey.conf` or the file of a plugin.\n\nThe whole server.\n",
    "\n### `Workers`\n\n*a number from 0 to 64; default `0`*\n\nThreads that serve.\n",
    "\n### `Nice`\n\n*a number*\n\nHow modest the process is.\n",
    "\n### `KeepAlive`\n\n*On or Off; default `On`*\n",
    "\n### `Timeout`\n\n*a duration from 1s to 1h; default `15s`*\n",
    "\n### `MaxRequestSize`\n\n*a size of at least 1K, in `K` without a unit; default `32`*\n",
    "\n### `PidFile`\n\n*a path*\n",
    "\n### `Indexfile`\n\n*words; default `index.html index.htm`*\n",
    "\n### `Deny`\n\n*words; may be repeated*\n",
    "\n### `Listen`\n\n*port [tls]; default `2001`; may be repeated*\n",
    "\n### `SymLink`\n\n*one of Off, Inside, On; default `Off`; plugin `static`*\n",
    "\n### `Shell`\n\n*a text; plugin `cheetah`*\n",
    "\n## `[MIMETYPES]`\n\nIn `monkey.conf` or the file of a plugin.\n\nExtensions and their types.\n",
    "\n## `[CHEETAH]`\n\n",
    "\n## `[HOST]`\n\nIn a host's file, `sites/*`. It must be there.\n\nA host.\n",
    "\n### `DocumentRoot`\n\n*a path; required*\n",
    "\n## `[AUTH]`\n\nIn a host's file, `sites/*`, or for all hosts in `monkey.conf`. It may appear several times.\n",
    "\n## `[PAGES]`\n\nIn a host's file, `sites/*`, or for all hosts in `monkey.conf`. It may appear several times.\n",
    "\n\nPages by status.\n\n### `Match`\n",
    "\n## `[SERVICE]`\n\nIn a host's file, `sites/*`. It may appear several times.\n",
};

TEST(reference)
{
    struct mk__conf *conf = sample_new();
    struct mk_buf out;
    const char *at;

    mk_buf_init(&out, 1 << 16);
    mk__conf_reference(conf, &out);
    at = mk_buf_cstr(&out);
    for (size_t i = 0; i < COUNT(pieces); i++) {
        const char *found = strstr(at, pieces[i]);
        if (!found)
            fail_msg("\"%s\" is missing after \"%.60s\"", pieces[i], at);
        at = found + 1;
    }
    mk_buf_release(&out);
    mk__conf_free(conf);
}
