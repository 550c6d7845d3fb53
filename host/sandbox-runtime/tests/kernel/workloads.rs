//! Everyday work succeeds in the sandbox.

use crate::kit::Session;
use crate::{Test, cannot_run, exists};

pub(crate) const TESTS: &[Test] = &[
    ("workloads::files_of_every_kind_are_made_and_moved", files_of_every_kind_are_made_and_moved),
    ("workloads::git_works", git_works),
    ("workloads::archives_work", archives_work),
    ("workloads::python_works", python_works),
    ("workloads::builds_work", builds_work),
    ("workloads::programs_run_as_soon_as_they_are_written", programs_run_as_soon_as_they_are_written),
];

fn files_of_every_kind_are_made_and_moved() {
    let session = Session::new();
    session.allows(
        "set -e; mkdir -p a/b c; echo x > a/b/f; mv a/b/f c/f; mv a/b c/b; ln c/f c/b/h; ln -s ../c/f a/l; \
         mkfifo a/p; (cat a/p > a/out &); echo through > a/p; while ! grep -q through a/out; do sleep 0.01; done; \
         install -m 755 c/f a/i; sed -i s/x/y/ c/f; truncate -s 3 c/f; truncate -s 0 a/i; \
         echo 1 > atomic.tmp; mv -f atomic.tmp atomic; cp -a c d; touch -d 2001-01-01 d/f; chmod 700 d; \
         dd if=/dev/zero of=big bs=64k count=4 2>/dev/null; mktemp; mktemp -d; cp big /tmp/big; mv /tmp/big c/; \
         flock atomic true; rm -r a c d big",
    );
}

fn git_works() {
    if !exists("/usr/bin/git") {
        return cannot_run("git");
    }
    let session = Session::new();
    session.allows(
        "set -e; exec 2>&1; export HOME=/tmp GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b \
         GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b; git init -b main r; cd r; \
         for i in 1 2 3; do mkdir d$i; echo $i > d$i/f; git add .; git commit -m $i; done; \
         git checkout -b side HEAD~1; echo s > s; git add s; git commit -m s; git rebase main; git branch -d main; \
         git worktree add ../tree HEAD~1; git clone . ../clone; git clone --no-hardlinks . /tmp/clone; \
         git stash list; git mv d1 e1; git commit -m moved; git gc; git status --porcelain | wc -l | grep -x 0; \
         cd ../clone; git pull; git -c protocol.file.allow=always submodule add \"$P/work/r\" sub; \
         git fsck",
    );
}

fn archives_work() {
    let session = Session::new();
    session.allows(
        "set -e; mkdir -p t/a/b; for i in 1 2 3 4 5; do echo $i > t/a/b/$i; ln -s $i t/a/b/l$i; done; \
         ln t/a/b/1 t/h; tar czf t.tar.gz t; mkdir out; tar xzf t.tar.gz -C out; diff -r t out/t; \
         tar xzf t.tar.gz -C /tmp; test /tmp/t/h -ef /tmp/t/a/b/1",
    );
}

fn python_works() {
    if !exists("/usr/bin/python3") {
        return cannot_run("python3");
    }
    let session = Session::new();
    let script = "
import fcntl, mmap, multiprocessing, os, pty, socket, sqlite3, subprocess, sys, tempfile
with tempfile.TemporaryFile(dir='.') as unnamed:
    unnamed.write(b'x' * 9)
fd = os.open('.', os.O_TMPFILE | os.O_RDWR)
os.link(f'/proc/self/fd/{fd}', 'linked', src_dir_fd=fd, follow_symlinks=True)
base = sqlite3.connect('base'); base.execute('pragma journal_mode=wal')
base.execute('create table t (n)'); base.execute('insert into t values (1)'); base.commit(); base.close()
listener = socket.socket(socket.AF_UNIX); listener.bind('sub/s'); listener.listen()
client = socket.socket(socket.AF_UNIX); client.connect('sub/s')
def worker(lock, value):
    with lock: value.value += 1
lock, value = multiprocessing.Lock(), multiprocessing.Value('i', 0)
workers = [multiprocessing.Process(target=worker, args=(lock, value)) for _ in range(4)]
[w.start() for w in workers]; [w.join() for w in workers]
assert value.value == 4
def read(fd): return os.read(fd, 99)
assert pty.spawn(['sh', '-c', 'stty size > size'], read) == 0
assert subprocess.run(['sh', '-c', 'kill -9 $$']).returncode == -9
os.replace('linked', 'sub/replaced'); os.rename('sub', 'bus')
";
    std::fs::write(session.path("work/s.py"), script).expect("a file");
    session.allows(
        "exec 2>&1; python3 s.py && python3 -m venv --without-pip v && v/bin/python -c 'import json'",
    );
}

fn builds_work() {
    if !exists("/usr/bin/cc") {
        return cannot_run("a C compiler");
    }
    let session = Session::new();
    session.allows(
        "set -e; exec 2>&1; echo 'int f(void) { return 3; }' > f.c; echo 'int f(void); int main(void) { return f(); }' > m.c; \
         cc -c f.c -o f.o; ar rcs libf.a f.o; cc m.c libf.a -o m; ./m || test $? = 3; \
         cc -shared -fPIC f.c -o libf.so; cc m.c -L. -lf -o d; LD_LIBRARY_PATH=. ./d || test $? = 3",
    );
    if exists("/usr/bin/make") {
        session.allows(
            "printf 'all: a b c\\na b c:\\n\\tsleep 0.05; echo x > $@\\n' > Makefile; make -j3 && test -f c",
        );
    }
}

/// A program cannot be executed while it is open for writing anywhere, so the broker must have closed it. That failed
/// once in a hundred times when no processor was free for the broker.
fn programs_run_as_soon_as_they_are_written() {
    let session = Session::new();
    session.allows(
        "exec 2>&1; for n in 1 2 3; do (while :; do :; done) & done; i=0; \
         while [ $i -lt 150 ]; do i=$((i+1)); cp /bin/true t; ./t || exit 1; rm t; done",
    );
}
