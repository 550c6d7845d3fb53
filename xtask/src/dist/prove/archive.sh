# The archive, as a user without root: installed, used, removed; and what is wrong is refused with nothing installed.
cd ~
everything ~ >/tmp/before
tar -xzf /packages/"$ARCHIVE"
cd "${ARCHIVE%.tar.gz}"
./install.sh | sed 's/^/  /'
works ~/.local/bin/portcullis
# A policy that does not come with the program is compiled by the other program.
cp /policies/workspace/policy.wasm other.wasm && printf '\0\5\4note' >>other.wasm
mv ~/.local/bin/portcullis-compile .
refuses 'portcullis-compile. cannot be started: .*install Portcullis again' ~/.local/bin/portcullis policy inspect other.wasm
mv portcullis-compile ~/.local/bin
~/.local/bin/portcullis policy inspect other.wasm >/dev/null
rm other.wasm
man_page=~/.local/share/man/man1/portcullis-run.1.gz
gzip -cd "$man_page" | grep -q portcullis
# Over itself, as an update is.
./install.sh >/dev/null
works ~/.local/bin/portcullis >/dev/null
~/.local/lib/portcullis/install.sh --uninstall | sed 's/^/  /'
refuses 'nothing is installed' ./install.sh --uninstall
forget_state
cd ~ && mv "${ARCHIVE%.tar.gz}" /tmp/whole
is_as_before /tmp/before ~
echo "  removed without leaving anything"

package() {
    rm -rf /tmp/package && cp -a /tmp/whole /tmp/package && cd /tmp/package
}
package
sed -i 's/^processor=.*/processor=riscv64/' install.sh
refuses 'a package for riscv64, and this machine is' ./install.sh
package
printf x >>bin/portcullis
refuses 'not the one that was packed' ./install.sh
package
truncate -s 100000 bin/portcullis
refuses 'not the one that was packed' ./install.sh
package
rm share/doc/portcullis/sbom.cdx.json
refuses 'a file is missing' ./install.sh
package
# A program for another processor, packed as if it were right.
printf '\x7fELF\x02\x01\x01' >bin/portcullis
(find bin share -type f | sort | xargs sha256sum) >SHA256SUMS
refuses 'does not run on this machine; nothing was installed' ./install.sh
package
refuses 'cannot be created: is it writable' ./install.sh --prefix /usr/local/own
refuses 'is it writable' ./install.sh --prefix /usr
refuses 'not an absolute path' ./install.sh --prefix here
refuses 'no space left' ./install.sh --prefix /small/prefix
[ -z "$(ls -A /small)" ] || { echo "the full disk has something on it" >&2; exit 1; }
head -c 2000000 /packages/"$ARCHIVE" >/tmp/cut.tar.gz
refuses 'Unexpected|unexpected' tar -xzf /tmp/cut.tar.gz -C /tmp
is_as_before /tmp/before ~
if ls -d /tmp/portcullis-install.* 2>/dev/null; then echo "this was left" >&2; exit 1; fi
echo "  nothing was half installed"
