// SPDX-License-Identifier: Apache-2.0
/*
 * The shared objects of services and packages (crash_object.h).
 */
#include "crash/crash_object.h"

#include "common/heap.h"

#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Written by the hooks of the configuration, which run one at a time. */
static _Atomic(struct crash_object *) objects;

struct crash_object *crash_find_object(uintptr_t address)
{
    struct crash_object *found = NULL;
    for (struct crash_object *o = atomic_load(&objects); o; o = o->next)
        if (address >= o->begin && address < o->end && (!found || found->has_ended))
            found = o;
    return found;
}

static struct crash_object *get_free_object(void)
{
    for (struct crash_object *o = atomic_load(&objects); o; o = o->next)
        if (o->has_ended && o->copy_users == 0)
            return o;
    struct crash_object *fresh = heap_zalloc(sizeof(*fresh));
    if (!fresh)
        return NULL;
    fresh->next = atomic_load(&objects);
    atomic_store(&objects, fresh);
    return fresh;
}

struct search {
    uintptr_t address, begin, end, bias;
};

/* Is called for each object of the process: finds the bounds of the one that contains the address. */
static int check_object(struct dl_phdr_info *info, size_t size, void *ctx)
{
    struct search *s = ctx;
    uintptr_t begin = UINTPTR_MAX, end = 0;
    (void)size;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t at = info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type != PT_LOAD)
            continue;
        begin = at < begin ? at : begin;
        end = at + segment->p_memsz > end ? at + segment->p_memsz : end;
    }
    if (s->address < begin || s->address >= end)
        return 0;
    *s = (struct search){s->address, begin, end, info->dlpi_addr};
    return 1;
}

struct crash_object *crash_add_object(enum crash_kind kind, const char *name, const void *address)
{
    struct search s = {.address = (uintptr_t)address};
    struct crash_object *o = dl_iterate_phdr(check_object, &s) ? get_free_object() : NULL;
    if (!o)
        return NULL;
    o->begin = o->end = 0;
    o->crashes = NULL;
    o->names = NULL;
    o->file[0] = '\0';
    o->bias = s.bias;
    o->kind = kind;
    snprintf(o->name, sizeof(o->name), "%s", name);
    o->begin = s.begin;
    o->end = s.end;
    o->has_ended = false;
    return o;
}

void crash_set_file(struct crash_object *object, const char *file, int copy)
{
    if (strlen(file) < sizeof(object->file))
        snprintf(object->file, sizeof(object->file), "%s", file);
    snprintf(object->copy_path, sizeof(object->copy_path), "/proc/self/fd/%d", copy);
    object->copy = copy;
    object->copy_users = copy >= 0;
}

bool crash_hold_copy(struct crash_object *object)
{
    unsigned n = atomic_load(&object->copy_users);
    while (n > 0)
        if (atomic_compare_exchange_weak(&object->copy_users, &n, n + 1))
            return true;
    return false;
}

void crash_release_copy(struct crash_object *object)
{
    int copy = object->copy;
    if (atomic_fetch_sub(&object->copy_users, 1) == 1)
        close(copy);
}

void crash_remove_object(struct crash_object *object)
{
    bool has_copy = object->copy_users > 0;
    assert(!object->has_ended);
    object->has_ended = true;
    if (has_copy)
        crash_release_copy(object);
}

bool crash_is_mapped(const void *address)
{
    struct search s = {.address = (uintptr_t)address};
    return dl_iterate_phdr(check_object, &s) != 0;
}

void crash_free_objects(void)
{
    struct crash_object *next, *kept = NULL;
    for (struct crash_object *o = atomic_exchange(&objects, NULL); o; o = next) {
        next = o->next;
        if (o->has_ended) {
            heap_free(o, sizeof(*o));
            continue;
        }
        o->next = kept;
        kept = o;
    }
    atomic_store(&objects, kept);
}
