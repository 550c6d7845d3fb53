# A forge that git reaches by ssh: whoever has the key gets `git-*` for the repositories, whose names begin with `/`.
COMMANDS = os.path.join(DIRECTORY, "commands")


def secure_shell(port):
    number = os.getuid()
    key, host_key = os.path.join(DIRECTORY, "client_key"), os.path.join(DIRECTORY, "host_key")
    for path in [host_key, key]:
        if not os.path.exists(path):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)
    with open("passwd", "w") as file:
        file.write(f"git:x:{number}:{number}::{ROOT}:/bin/sh\nsshd:x:65534:65534::/:/bin/false\n")
    with open("forge.sh", "w") as file:
        file.write(f"""printf '%s\\n' "$GIT_PROTOCOL $SSH_ORIGINAL_COMMAND" >> '{COMMANDS}'
case $SSH_ORIGINAL_COMMAND in
*"'/git/endless.git'") yes; echo "endless ended" >> '{COMMANDS}'; exit ;;
*"'/git/hang.git'") cat > /dev/null; echo "hang ended" >> '{COMMANDS}'; exit ;;
*"'/git/slow.git'") sleep 0.5; echo 'this is slow' >&2; exit 1 ;;
"git-"*" '/git/"*) ;;
*) echo "this is a forge" >&2; exit 1 ;;
esac
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'
service=${{SSH_ORIGINAL_COMMAND%% *}} repository=${{SSH_ORIGINAL_COMMAND#* \\'}}
exec git "${{service#git-}}" "{ROOT}${{repository%\\'}}"
""")
    settings = {
        "Port": port, "ListenAddress": ADDRESS, "HostKey": host_key, "AuthorizedKeysFile": key + ".pub", "StrictModes": "no",
        "PidFile": "none", "UsePAM": "no", "PermitRootLogin": "yes", "MaxStartups": "100", "AcceptEnv": "GIT_PROTOCOL", "ForceCommand": f"sh {ROOT}/forge.sh",
    }
    with open("sshd_config", "w") as file:
        file.writelines(f"{name} {value}\n" for name, value in settings.items())
    open(COMMANDS, "a").close()
    sshd = open(os.path.join(DIRECTORY, "sshd")).read()
    line = f"mount --bind {ROOT}/passwd /etc/passwd && mkdir -p /run/sshd; exec '{sshd}' -D -e -f {ROOT}/sshd_config"
    subprocess.Popen(["unshare", "--mount", "sh", "-c", line], stdout=subprocess.DEVNULL)
    while socket.socket().connect_ex((ADDRESS, port)) != 0:
        time.sleep(0.02)


secure_shell(2222)
