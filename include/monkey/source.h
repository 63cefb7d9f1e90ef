// SPDX-License-Identifier: Apache-2.0
/*
 * Which names are those of programs, for plugins that run files: what is_source (<monkey/plugin.h>) compares. Names are
 * compared in any ASCII case. A copy that an editor or a tool leaves next to a program counts as the program: its name
 * followed by .gz .br .zst .bak .old .orig .swp or ~, or by what other editors and package managers append (.save
 * .dpkg-old ...), several of them too. So does what names the same file on file systems of Windows: dots and spaces
 * behind the name, or "::$DATA". Pure functions, any thread. In the kit: plugins link -lmonkey-kit.
 */
#ifndef MONKEY_SOURCE_H
#define MONKEY_SOURCE_H

#include "pattern.h"
#include "plugin.h"

MK_C_BEGIN

/* Returns the name without what makes it that of a copy; at least its first byte. */
MK_API struct mk_str mk_source_strip(struct mk_str name);

/*
 * Returns whether a segment of a path, or the last one of a file's name, ends with `extension`, which begins with a
 * dot. A segment that is not the last counts, because what is behind it may be the PATH_INFO of a program.
 */
MK_API bool mk_source_has_extension(enum mk_source_name kind, struct mk_str name, struct mk_str extension);

/* Returns whether the pattern matches the path, or the one that it is a copy of; also if that is not known. */
MK_API bool mk_source_matches(const struct mk_pattern *pattern, struct mk_str path);

/* Returns whether `name` is the folder or lies below it, in this case of its letters. Slashes at their ends are
 * ignored. */
MK_API bool mk_source_is_below(struct mk_str name, struct mk_str folder);

MK_C_END

#endif
