#compdef monkey mk_passwd
# SPDX-License-Identifier: Apache-2.0
# Completes the options of monkey and mk_passwd in zsh, which reads them from `--help`.
_gnu_generic
