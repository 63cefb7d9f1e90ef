// SPDX-License-Identifier: Apache-2.0
/* The manual, in builds whose tables of keys have its texts (MK_MANUAL). */
#include "conf/conf.h"
#include "server/plugins/plugins.h"

#include <monkey/monkey.h>

#include <errno.h>

int mk_reference(struct mk_buf *out)
{
    struct mk__conf *conf = mk__conf_new();
    int err = conf ? mk__plugins_declare_all(conf) : -ENOMEM;
    if (err == 0) {
        mk__conf_reference(conf, out);
        err = out->err;
    }
    if (conf)
        mk__conf_free(conf);
    return err;
}
