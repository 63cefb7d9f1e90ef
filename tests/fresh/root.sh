# SPDX-License-Identifier: Apache-2.0
#
# Sourced by the scripts of this folder, which set $top: a root with a Debian in build/fresh, and the commit in it. It
# needs root and the package mmdebstrap; packages come from where this machine gets them. Nothing outside build/fresh is
# changed.
# shellcheck shell=sh disable=SC2154

base=$top/build/fresh
root=$base/$(basename "$0")

# Runs the script again in namespaces, with which mounts and processes end, however it ends.
enter_namespaces() { # arguments
    if [ "${1-}" = --inside ]; then
        return
    fi
    [ "$(id -u)" -eq 0 ] || {
        echo "$0: root is needed to make a file system" >&2
        exit 1
    }
    exec unshare --mount --pid --fork --kill-child --propagation private "$0" --inside "$@"
}

say() {
    printf '==> fresh: %s\n' "$*"
}

since() { # seconds of the epoch
    echo $(($(date +%s) - $1))
}

make_root() { # suite, packages
    rm -rf "$root"
    mkdir -p "$base"
    mmdebstrap --quiet --variant=minbase --include="$2" "$1" "$root"
    for file in /etc/apt/apt.conf.d/*proxy* /etc/resolv.conf; do
        [ ! -e "$file" ] || cp "$file" "$root$file"
    done
    printf '127.0.0.1 localhost\n::1 localhost\n' >"$root/etc/hosts"
    home=$root/root
    chmod 700 "$home" # other users, as which tests run programs, cannot read a clone here
    git clone --quiet --no-hardlinks "$top" "$home/monkey"
    git -C "$home/monkey" checkout --quiet "$(git -C "$top" rev-parse HEAD)"
    mount -t proc proc "$root/proc"
    mount -t sysfs -o ro sysfs "$root/sys"
    mount --rbind /dev "$root/dev"
    mount -t tmpfs tmpfs "$root/run"
}

# Keeps each CPU busy, as other programs of a machine do, until the namespace of processes ends.
keep_cpus_busy() {
    for _ in $(seq "$(nproc)"); do
        (while :; do :; done) &
    done
}

inside() { # command
    chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 CI=true \
        sh -c "cd ~/monkey && $1"
}
