"""What test servers serve: a git repository, and packages for npm and pip. Servers follow in the same program."""
import base64, gzip, hashlib, http.server, io, json, os, shutil, socket, socketserver, ssl, subprocess, sys, tarfile, tempfile, threading, time, zipfile

ADDRESS, DIRECTORY = sys.argv[1], sys.argv[2]
ROOT = tempfile.mkdtemp(prefix="served-" + ADDRESS + "-", dir=DIRECTORY)
# The server for ssh runs as another user.
os.chmod(ROOT, 0o755)
os.chdir(ROOT)


def git(*words):
    who = ["-c", "user.name=n", "-c", "user.email=e", "-c", "init.defaultBranch=main"]
    environment = dict(os.environ, HOME=ROOT, GIT_CONFIG_NOSYSTEM="1")
    subprocess.run(["git", *who, *words], check=True, env=environment, stdout=subprocess.DEVNULL)


def make_repository(bare):
    """Makes a bare repository with a file."""
    os.makedirs("work")
    with open("work/file", "w") as file:
        file.write("REACHED by git\n")
    git("init", "-q", "work")
    git("-C", "work", "add", "file")
    git("-C", "work", "commit", "-qm", "one")
    git("clone", "-q", "--bare", "work", bare)


def make_tarball():
    """Makes a package of npm."""
    tarball = io.BytesIO()
    with tarfile.open(fileobj=tarball, mode="w:gz") as archive:
        for name, text in [("package.json", '{"name":"hello","version":"1.0.0","main":"i.js"}'), ("i.js", 'module.exports = "REACHED by npm"')]:
            entry = tarfile.TarInfo("package/" + name)
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return tarball.getvalue()


def about_package(base):
    """Describes the package of npm at a registry."""
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(TARBALL).digest()).decode()
    dist = {"tarball": base + "/npm/hello-1.0.0.tgz", "integrity": integrity}
    version = {"name": "hello", "version": "1.0.0", "main": "i.js", "dist": dist}
    return json.dumps({"name": "hello", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}).encode()


def make_wheel():
    """Makes a package of pip."""
    wheel = io.BytesIO()
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("hello.py", 'print("REACHED by pip")\n')
        archive.writestr("hello-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: hello\nVersion: 1.0\n")
        archive.writestr("hello-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("hello-1.0.dist-info/RECORD", "hello.py,,\n")
    return wheel.getvalue()


TARBALL, WHEEL = make_tarball(), make_wheel()
LINK = b'<a href="hello-1.0-py3-none-any.whl">hello-1.0-py3-none-any.whl</a>'

