# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Completes the words of dudac in bash, by the program itself.
eval "$(_DUDAC_COMPLETE=bash_source dudac)"
