// SPDX-License-Identifier: Apache-2.0
/*
 * The memory of a configuration: an arena for all that the generation keeps, and one for the texts of the files, which
 * are freed after loading.
 */
#include "conf/internal.h"

#include <errno.h>

/* Far more than any configuration needs, and far less than a machine has: stops includes that multiply. */
static const size_t arena_bytes_max = 64 << 20;

struct mk__conf *mk__conf_new(void)
{
    struct mk__conf *conf = mk_account_alloc(NULL, sizeof(*conf));
    if (!conf)
        return NULL;
    memset(conf, 0, offsetof(struct mk__conf, words)); /* `words` needs no zeroing, and so touches no pages */
    mk_arena_init(&conf->arena, NULL, arena_bytes_max, NULL, 0);
    mk_arena_init(&conf->texts, NULL, arena_bytes_max, NULL, 0);
    conf->last_diagnostic = &conf->diagnostics;
    return conf;
}

void mk__conf_free(struct mk__conf *conf)
{
    if (!conf)
        return;
    mk_arena_release(&conf->arena);
    mk_arena_release(&conf->texts);
    mk_account_free(NULL, conf, sizeof(*conf));
}

void mk__conf_free_texts(struct mk__conf *conf)
{
    for (struct mk__conf_source *s = conf->sources; s; s = s->next)
        s->text = MK_STR_NONE;
    conf->variables = NULL;
    mk_arena_release(&conf->texts);
}

int mk__conf_out_of_memory(struct mk__conf *conf)
{
    conf->out_of_memory = true;
    return -ENOMEM;
}

bool mk__conf_is_out_of_memory(const struct mk__conf *conf)
{
    return conf->out_of_memory;
}

struct mk_str mk__conf_first_text(const struct mk__conf *conf)
{
    const struct mk__conf_source *s = conf->sources;
    while (s && s->next)
        s = s->next;
    return s ? s->text : MK_STR_NONE;
}
