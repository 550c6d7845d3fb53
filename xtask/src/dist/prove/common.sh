# What the scripts of the proof have in common.

# Runs a command that must fail with a sentence: refuses PATTERN COMMAND...
refuses() {
    local pattern=$1 said
    shift
    if said=$("$@" 2>&1); then
        echo "this should have failed: $*" >&2
        exit 1
    fi
    if ! grep -Eq -- "$pattern" <<<"$said"; then
        printf 'expected /%s/ of %s, and it said:\n%s\n' "$pattern" "$*" "$said" >&2
        exit 1
    fi
    echo "  refused: $(grep -E -m1 -- "$pattern" <<<"$said")"
}

# Lists everything below the directories, without what changes by itself.
everything() {
    find "$@" -xdev \( -path /proc -o -path /dev -o -path /var/lib/dpkg -o -path /var/log -o -path /var/cache \) -prune \
        -o -print | sort
}

# Fails if what is there differs from an earlier list.
is_as_before() {
    diff "$1" <(everything "${@:2}") || { echo "this was left, or taken away" >&2; exit 1; }
}

# What the programs themselves write, as docs/install.md says.
forget_state() {
    rm -rf ~/.cache/portcullis ~/.local/state/portcullis ~/.local/share/portcullis
    rmdir ~/.cache ~/.local/state ~/.local/share ~/.local 2>/dev/null || true
}

# The program does its work.
works() {
    "$1" --version
    (cd ~/project && "$1" check read notes.txt >/dev/null)
    refuses '^deny' "$1" check read /etc/shadow
    (cd ~/project && "$1" run -- true)
    (cd ~/project && "$1" run -- sh -c 'echo inside > made.txt' && grep -q inside made.txt && rm made.txt)
    (cd ~/project && refuses 'Permission denied|Read-only' "$1" run --ask deny -- sh -c 'echo x > /usr/made')
}
