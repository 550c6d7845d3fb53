# Fills the home of a developer; runs in ~/work/app, which is empty.
set -e
cd ~
mkdir -p .config .cache .local/bin .local/share .ssh Documents work
chmod 700 .ssh
cat > .gitconfig <<'END'
[user]
	name = Dev Eloper
	email = dev@example.org
[init]
	defaultBranch = main
[protocol "file"]
	allow = always
END
echo 'export EDITOR=vi' > .bashrc
echo '. ~/.bashrc' > .profile
printf 'Host *\n  BatchMode yes\n' > .ssh/config
touch .ssh/known_hosts
echo 'not a key' > .ssh/id_ed25519
chmod 600 .ssh/*
echo 'private' > Documents/notes.txt
cd ~/work/app
git init -q
mkdir -p src
echo '# app' > README.md
printf 'one\ntwo\nthree\n' > src/numbers.txt
printf 'node_modules\ntarget\nbuild\n' > .gitignore
git add . && git commit -qm 'first'
echo four >> src/numbers.txt && git commit -qam 'second'
git clone -q --bare . ../origin.git
git remote add origin ../origin.git
git fetch -q origin && git branch -q -u origin/main
git init -q ../lib && cd ../lib
echo '# lib' > README.md && mkdir -p src && echo 'shared' > src/shared.txt
git add . && git commit -qm 'lib'
