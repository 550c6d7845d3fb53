#!/bin/sh
# Installs Portcullis for one user, without root: everything, or nothing.
set -eu

version=@VERSION@
processor=@PROCESSOR@
kernel=@KERNEL@
system=@SYSTEM@

usage() {
    cat <<END
Usage: ./install.sh [--prefix DIR] [--uninstall]

  --prefix DIR   where to install; by default \$PREFIX or ~/.local
  --uninstall    removes what this script installed there

Afterwards \`portcullis pi-extension install\` puts plain \`pi\` under the policy.
END
}

fail() {
    echo "install.sh: $1" >&2
    exit 1
}

prefix=${PREFIX:-${HOME:-}/.local}
action=install
while [ $# -gt 0 ]; do
    case $1 in
        --prefix) [ $# -gt 1 ] || fail "--prefix needs a directory"; prefix=$2; shift ;;
        --prefix=*) prefix=${1#--prefix=} ;;
        --uninstall) action=uninstall ;;
        -h | --help) usage; exit 0 ;;
        *) usage >&2; exit 2 ;;
    esac
    shift
done
case $prefix in
    /*) ;;
    *) fail "\`$prefix\` is not an absolute path; name one with --prefix" ;;
esac
# The list of what was installed, and this script, to take it away again.
own=$prefix/lib/portcullis

# Removes directories that were made here, if nothing else is in them.
remove_directories() {
    sort -r | while IFS= read -r directory; do
        rmdir "$directory" 2>/dev/null || true
    done
}

uninstall() {
    [ -f "$own/files" ] || fail "nothing is installed below $prefix: there is no $own/files"
    while IFS= read -r file; do
        rm -f "$prefix/$file" || fail "$prefix/$file cannot be removed"
    done <"$own/files"
    made=$(cat "$own/directories")
    rm -f "$own/files" "$own/directories" "$own/install.sh"
    printf '%s\n' "$made" | remove_directories
    echo "Removed portcullis from $prefix."
    echo "Your settings and logs are still there; docs/install.md says where."
}

check() {
    [ "$(uname -s)" = "$kernel" ] || fail "this is a package for $system, and not for $(uname -s)"
    [ "$(uname -m)" = "$processor" ] ||
        fail "this is a package for $processor, and this machine is $(uname -m); take the one for $(uname -m)"
    # macOS has the same program by another name.
    if [ $kernel = Darwin ]; then sha256sum() { shasum -a 256 "$@"; }; fi
    for tool in sha256sum awk; do
        command -v $tool >/dev/null || fail "the program $tool is missing"
    done
    [ -f "$here/SHA256SUMS" ] || fail "SHA256SUMS is missing; unpack the whole archive again"
    (cd "$here" && sha256sum --check --status SHA256SUMS 2>/dev/null) ||
        fail "a file is missing or not the one that was packed; fetch and unpack the archive again"
}

# Makes a directory with those above it, and notes which are new.
make_directory() {
    [ -d "$1" ] && return
    case $1 in */*) make_directory "${1%/*}" ;; esac
    [ -d "${1:-/}" ] && return
    mkdir "$1" 2>/dev/null || give_up "$1 cannot be created: is it writable, and is there space?"
    echo "$1" >>"$note"
}

# Undoes what was begun.
give_up() {
    [ -z "${stage:-}" ] || rm -rf "$stage"
    remove_directories <"$note"
    rm -f "$note"
    fail "$1; nothing was installed"
}

install_all() {
    here=$(cd "$(dirname "$0")" && pwd)
    check
    note=$(mktemp "${TMPDIR:-/tmp}/portcullis-install.XXXXXX") || fail "there is no place for temporary files"
    trap 'give_up "it was interrupted"' INT TERM HUP
    files=$(awk '{ print substr($0, 67) }' "$here/SHA256SUMS")
    for directory in $(printf '%s\n' "$files" | sed 's,/[^/]*$,,' | sort -u) lib/portcullis; do
        make_directory "$prefix/$directory"
    done
    # Beside its place, so that each file is moved there at once.
    stage=$(mktemp -d "$own/new.XXXXXX" 2>/dev/null) || give_up "$own is not writable, or full"
    for file in $files; do
        name=$(printf '%s' "$file" | tr / +)
        cp "$here/$file" "$stage/$name" 2>/dev/null || give_up "$prefix has no space left, or is not writable"
        [ -w "$(dirname "$prefix/$file")" ] || give_up "$(dirname "$prefix/$file") is not writable"
        [ ! -d "$prefix/$file" ] || give_up "$prefix/$file is a directory"
    done
    cp "$here/install.sh" "$stage/install.sh" 2>/dev/null || give_up "$prefix has no space left"
    printf '%s\n' "$files" >"$stage/files" 2>/dev/null || give_up "$prefix has no space left"
    { cat "$note" && { [ ! -f "$own/directories" ] || cat "$own/directories"; }; } 2>/dev/null |
        sort -u >"$stage/directories" || give_up "$prefix has no space left"
    "$stage/bin+portcullis" --version >/dev/null 2>&1 || give_up "the program does not run on this machine"
    for file in $files; do
        mv -f "$stage/$(printf '%s' "$file" | tr / +)" "$prefix/$file" || give_up "$prefix/$file cannot be written"
    done
    mv -f "$stage/install.sh" "$stage/files" "$stage/directories" "$own/"
    rmdir "$stage"
    rm -f "$note"
    [ $kernel = Linux ] || echo "Portcullis for $system is experimental: not run by its makers."
    echo "Installed portcullis $version in $prefix; to remove it: $own/install.sh --uninstall --prefix $prefix"
    case :$PATH: in
        *:"$prefix/bin":*) ;;
        *) echo "$prefix/bin is not in PATH: add it, or name the program with its path." ;;
    esac
    echo "Next: portcullis doctor, then portcullis pi-extension install"
}

if [ $action = uninstall ]; then uninstall; else install_all; fi
