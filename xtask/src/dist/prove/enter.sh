# Runs a script in another root, in namespaces of its own: enter.sh ROOT UID HOME BINDS SCRIPT
# BINDS are lines `FROM TO`; TO is in the new root and read-only there. A changed root (chroot) would not do: the kernel
# makes no user namespaces for such processes.
set -e
mount --bind "$1" "$1"
mount -t proc proc "$1/proc"
mount --rbind /dev "$1/dev"
mount -t tmpfs -o mode=1777 tmpfs "$1/tmp"
mkdir -p "$1/small"
mount -t tmpfs -o mode=1777,size=1m tmpfs "$1/small"
printf '%s' "$4" | while read -r from to; do
    mkdir -p "$1$to"
    mount --bind "$from" "$1$to"
    mount -o remount,bind,ro "$1$to"
done
cd "$1"
mkdir -p .old
pivot_root . .old
cd /
umount -l /.old
rmdir /.old
exec setpriv --reuid "$2" --regid "$2" --clear-groups env -i HOME="$3" USER=user LANG=C.UTF-8 \
    PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin bash -euo pipefail -c "$5"
