# The Debian package, as root: installed, used by a user, removed.
everything / >/tmp/before
dpkg --install /packages/"$DEB" | sed 's/^/  /'
[ -f /etc/apparmor.d/portcullis ] && [ -f /usr/share/doc/portcullis/copyright ]
as_user() { setpriv --reuid 1000 --regid 1000 --clear-groups env HOME=/home/user bash -euo pipefail -c "$1"; }
as_user "$(cat /.common.sh); works /usr/bin/portcullis; forget_state"
dpkg --remove portcullis | sed 's/^/  /'
dpkg --status portcullis >/dev/null 2>&1 && { echo "the package is still known" >&2; exit 1; }
is_as_before /tmp/before /
echo "  removed without leaving anything"
head -c 100000 /packages/"$DEB" >/tmp/cut.deb
refuses 'error processing archive' dpkg --install /tmp/cut.deb
if [ -f /packages/"$FOREIGN_DEB" ]; then
    refuses 'does not match system' dpkg --install /packages/"$FOREIGN_DEB"
fi
is_as_before /tmp/before /
