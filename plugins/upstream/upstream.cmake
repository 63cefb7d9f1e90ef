# SPDX-License-Identifier: Apache-2.0
# The library that asks name servers, of the plugin upstream; nothing else is linked with it.
mk_link_library(monkey-upstream ares.h cares libc-ares-dev "the plugin upstream" "leave the plugin out of MK_MODULES")
