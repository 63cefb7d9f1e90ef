# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Completes the words of monkey in bash. The program says itself which options and sections it has.

_monkey() {
    local program=${COMP_WORDS[0]} word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} words=''
    COMPREPLY=()
    case $before in
    -p | --port | -l | --listen | -w | --workers | --proxy | proxy) return ;;
    --reference) words=$("$program" --reference 2>/dev/null | sed -n 's/^## `\[\([A-Z0-9_]*\)\]`$/\1/p') ;;
    -c | --config | -o | --one-shot) ;;
    *)
        case $word in
        -*) words=$("$program" --help 2>/dev/null | sed -n 's/^  .* \(--[a-z-]*\) .*/\1/p') ;;
        *) [ "$COMP_CWORD" -gt 1 ] || words='proxy shell convert' ;;
        esac
        ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
    case $word in
    -*) ;;
    *) [ "$before" = --reference ] || {
        compopt -o filenames 2>/dev/null || : # a test calls this without a line that is edited
        mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$word") # folders, and files of configurations
    } ;;
    esac
}

complete -F _monkey monkey
