# Pushes to the repository `pushed`, from a clone in the current directory. With `S`, over ssh.
export GIT_AUTHOR_NAME=n GIT_AUTHOR_EMAIL=e GIT_COMMITTER_NAME=n GIT_COMMITTER_EMAIL=e
R=${S:-$B}/git/pushed.git

# Makes a commit with a file of this content.
change() { printf '%s\n' "$1" > new && git add new && git commit -qm change; }

# Sends a body as a push. The first argument is a program in Python that changes `commands` or `body`.
raw() {
    git commit -q --allow-empty -m raw
    git rev-list --objects HEAD ^origin/main | git pack-objects -q --stdout > pack
    OLD=$(git rev-parse origin/agent/old) MAIN=$(git rev-parse origin/main) NEW=$(git rev-parse HEAD) python3 -c '
import gzip, os, sys
old, main, new, pack = *(os.environ[name] for name in ["OLD", "MAIN", "NEW"]), open("pack", "rb").read()
line = lambda text: b"%04x" % (len(text) + 4) + text
zero, caps = "0" * 40, "\0report-status agent=git/2"
update = lambda old, new, name, more="": line(f"{old} {new} {name}{more}".encode("latin-1"))
good, evil = update(zero, new, "refs/heads/agent/raw", caps), update(main, new, "refs/heads/main", caps)
body = good + b"0000" + pack
exec(sys.argv[1])
open("body", "wb").write(body)' "$1"
    if [ -n "$S" ]; then
        $GIT_SSH_COMMAND -p 2222 git@allowed.test "git-receive-pack '/git/pushed.git'" < body | tr -d '\0'
        echo
        return
    fi
    curl -sS -u "me:$FORGE_PASSWORD" -H 'Content-Type: application/x-git-receive-pack-request' ${2:+-H "$2"} \
        --data-binary @body "$R/git-receive-pack" | tr -d '\0'
    echo
}

# Runs a case in a fresh clone, and prints the references that it changed at the server.
case_of() {
    curl -sS -H "X-Key: $FORGE_KEY" "$B/reset" > before
    rm -rf clone && git clone -q "$R" clone && cd clone || return
    ( eval "$1" ) 2>&1 | tail -n 12
    cd ..
    curl -sS -H "X-Key: $FORGE_KEY" "$B/references" > after
    diff before after | sed -n 's/^[<>] \([a-z]*\) [0-9a-f]* /CHANGED \1 /p'
}


