# SPDX-License-Identifier: Apache-2.0
# The libraries of the plugin mandril.
target_link_libraries(monkey-mandril PRIVATE monkey-kit)
