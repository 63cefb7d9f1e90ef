# SPDX-License-Identifier: Apache-2.0
# The plugin duda, the framework for web services.
target_compile_definitions(monkey-duda PRIVATE DUDA_FRAMEWORK)
