# `pi install` as a user whose npm knows only the registry on loopback, then pi with a scripted model.
cd ~
printf 'registry=%s\nprefix=%s\nupdate-notifier=false\n' "$REGISTRY" ~/.npm-global >~/.npmrc
export PATH=/opt/bin:$PATH
node /opt/proof/installed.mjs ~/project
package=$(find ~/.npm-global ~/.pi -path '*/@portcullis/linux-*/bin/portcullis' 2>/dev/null || true)
says() {
    local said
    said=$(cd ~/project && pi -p --no-session go 2>&1 </dev/null || true)
    grep -Eq -- "$1" <<<"$said" || { printf 'expected /%s/, and pi said:\n%s\n' "$1" "$said" >&2; exit 1; }
    echo "  says: $(grep -Eo -m1 -- "$1.{0,60}" <<<"$said")"
}
export PI_OFFLINE=1
mv "$package" ~/program
says 'npm package @portcullis/linux-[a-z0-9]+ with the program `portcullis` is not installed; run `npm_config_include=optional pi install npm:@portcullis/pi`'
printf '\x7fELF\x02\x01\x01' >"$package" && chmod +x "$package"
says 'no program for this machine: it is damaged or made for another one'
head -c 1000000 ~/program >"$package"
says 'no program for this machine: it is damaged or made for another one'
mv ~/program "$package"
unset PI_OFFLINE
# The package of another processor.
mkdir ~/other && cd ~/other
npm pack --silent "$PROGRAM_PACKAGE" >/dev/null && tar -xzf *.tgz && rm *.tgz
sed -i '/"cpu"/,/]/s/"[a-z0-9]*"$/"s390x"/' package/package.json
tar -czf package.tgz package && rm -r package
refuses 'EBADPLATFORM' npm install ./package.tgz
cd ~ && rm -r ~/other
pi remove npm:@portcullis/pi >/dev/null
if find ~/.npm-global ~/.pi -path '*@portcullis/*' 2>/dev/null | grep .; then echo "this was left by pi remove" >&2; exit 1; fi
echo "  removed by pi without leaving anything"
