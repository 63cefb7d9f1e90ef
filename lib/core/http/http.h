// SPDX-License-Identifier: Apache-2.0
/*
 * Opens and closes the HTTP context of a thread, and changes its settings.
 */
#ifndef MK_HTTP_HTTP_H
#define MK_HTTP_HTTP_H

#include "http/context.h"

/* Returns 0 or -ENOMEM. What the pointers point to must outlive `http`. */
int mk__http_init(struct mk__context *http, struct mk_loop *loop, const struct mk__http_settings *settings,
                  const struct mk__http_app *app, void *app_ctx, struct mk_account *account);
/* Changes the settings and takes the buffers of `b`. In the thread of `http`, outside of turns of its connections. */
void mk__http_apply_settings(struct mk__context *http, const struct mk__http_settings *settings,
                             struct mk__context_buffers *b);

/* Frees the memory of `http`, which must not have connections any more. */
void mk__http_release(struct mk__context *http);

#endif
