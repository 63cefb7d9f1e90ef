// SPDX-License-Identifier: Apache-2.0
/*
 * Keeps scripts for a second (recent.h): a slot for each hash.
 */
#include "recent.h"

#include <monkey/base/siphash.h>

/* A path that a client chooses for the slot of another one costs that a search, so the hash needs no key. */
static size_t get_slot(struct mk_str path)
{
    static const uint64_t key[2];
    return mk_siphash(key, path.p, path.len) % RECENT_SLOTS;
}

const struct fastcgi_script *recent_find(const struct recent *r, const struct fastcgi_conf *conf, struct mk_str path,
                                         uint64_t now_ms)
{
    const struct recent_script *slot = &r->slots[get_slot(path)];
    bool is_hit = slot->conf == conf && now_ms < slot->end_ms && mk_str_eq(slot->path, path);
    return is_hit ? &slot->script : NULL;
}

static void clear_slot(struct recent_script *slot)
{
    if (slot->conf)
        mk_account_free(NULL, (char *)(uintptr_t)slot->path.p, slot->bytes);
    *slot = (struct recent_script){0};
}

static struct mk_str copy_text(char **to, struct mk_str text)
{
    struct mk_str copy = mk_str(*to, text.len);
    if (text.len)
        memcpy(*to, text.p, text.len);
    *to += text.len;
    return copy;
}

void recent_add(struct recent *r, const struct fastcgi_conf *conf, struct mk_str path,
                const struct fastcgi_script *script, uint64_t now_ms)
{
    struct recent_script *slot = &r->slots[get_slot(path)];
    size_t bytes = path.len + script->name.len + script->info.len + script->filename.len + script->root.len;
    clear_slot(slot);
    char *to = mk_account_alloc(NULL, bytes);
    if (!to)
        return;
    *slot = (struct recent_script){.conf = conf, .end_ms = now_ms + RECENT_MS, .bytes = bytes};
    slot->path = copy_text(&to, path);
    slot->script.name = copy_text(&to, script->name);
    slot->script.info = copy_text(&to, script->info);
    slot->script.filename = copy_text(&to, script->filename);
    slot->script.root = copy_text(&to, script->root);
}

void recent_release(struct recent *r)
{
    for (size_t i = 0; i < RECENT_SLOTS; i++)
        clear_slot(&r->slots[i]);
}
