# SPDX-License-Identifier: Apache-2.0
# The plugin `cache` links with the store.
target_link_libraries(monkey-cache PRIVATE monkey-kit)
