# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Completes the words of wr in bash, by the program itself.
eval "$(_WR_COMPLETE=bash_source wr)"
