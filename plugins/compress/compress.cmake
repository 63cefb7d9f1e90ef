# SPDX-License-Identifier: Apache-2.0
# The libraries of the plugin compress; nothing else is linked with them.
set(otherwise "leave the plugin out with -DMK_MODULES=")
mk_link_library(monkey-compress zlib.h z zlib1g-dev "the plugin compress" "${otherwise}")
mk_link_library(monkey-compress brotli/encode.h brotlienc libbrotli-dev "the plugin compress" "${otherwise}")
mk_link_library(monkey-compress zstd.h zstd libzstd-dev "the plugin compress" "${otherwise}")
