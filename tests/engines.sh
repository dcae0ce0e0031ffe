#!/usr/bin/env bash
# A real Docker, a real Podman as root and another as nobody in particular, and a registry for the tests of `lock force-unlock`, all of them private.
#
#   tests/engines.sh DIR
#
# Runs as root on Debian. Prints one line of JSON when everything answers, runs until its standard input
# ends, and then stops what it started and removes DIR. A line `restart-docker` starts Docker again after it was
# killed, and is answered by a line with its process ID. Containers use host networking: there is no bridge and
# no iptables. The guarded registry has the same images behind a login.
set -euo pipefail

dir=$1
mkdir -p "$dir"
pids=()
rootless_pid=

say() { printf 'engines: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

need() {
  command -v "$1" >/dev/null && return
  [[ -e /etc/debian_version && $(id -u) == 0 ]] || die "$1 is missing: install it (on Debian: apt-get install $2)"
  { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$2"; } >&2
}

stop() {
  local pid
  # The rootless Podman runs as a child of the one that was started, which may go without it.
  [[ -z $rootless_pid ]] || kill $(ps -o pid= --ppid "$rootless_pid") 2>/dev/null || true
  for pid in ${pids[@]+"${pids[@]}"}; do kill "$pid" 2>/dev/null || true; done
  for pid in ${pids[@]+"${pids[@]}"}; do wait "$pid" 2>/dev/null || true; done
  # It keeps the rootless user's namespace, and is nobody's child.
  local pause=$dir/rootless/run/libpod/tmp/pause.pid
  [[ ! -s $pause ]] || kill "$(<"$pause")" 2>/dev/null || true
  # A daemon that was killed, or a container that outlived it, leaves mounts behind.
  local mount
  while read -r mount; do umount -l "$mount" 2>/dev/null || true; done < <(
    awk -v dir="$(realpath "$dir")/" 'index($2, dir) == 1 { print $2 }' /proc/mounts | sort -r
  )
  rm -rf --one-file-system "$dir" || say "$dir could not be removed"
}
trap stop EXIT

# until_answers SECONDS COMMAND...
until_answers() {
  local end=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < end)) || { tail -n 20 "$dir"/*.log >&2; die "no answer: $*"; }
    sleep 0.2
  done
}

export PATH=$PATH:/usr/sbin:/sbin
need dockerd docker.io
need podman podman
need runc runc
need newuidmap uidmap
need ps procps
need docker-registry docker-registry
need curl curl
need htpasswd apache2-utils
need openssl openssl

# Where a user without rights has to pass.
chmod 711 "$dir"
port=$((20000 + RANDOM % 10000))
guarded=$((30000 + RANDOM % 2000))
password=CANARY-$RANDOM$RANDOM
cat >"$dir/registry.yml" <<END
version: 0.1
log: {level: warn}
storage: {filesystem: {rootdirectory: $dir/registry}, delete: {enabled: true}}
http: {addr: 127.0.0.1:$port}
END
docker-registry serve "$dir/registry.yml" >"$dir/registry.log" 2>&1 &
pids+=($!)
htpasswd -Bbn -C 5 tester "$password" >"$dir/htpasswd"
sed -e "s/:$port}/:$guarded}/" -e "\$aauth: {htpasswd: {realm: tests, path: $dir/htpasswd}}" \
  "$dir/registry.yml" >"$dir/guarded.yml"
docker-registry serve "$dir/guarded.yml" >"$dir/guarded.log" 2>&1 &
pids+=($!)

# An authority, and certificates of the engine and of a client, for Docker behind TLS.
tls=$((32000 + RANDOM % 500))
certs=$dir/certs
mkdir "$certs"
(
  cd "$certs"
  openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=tests" -keyout ca-key.pem -out ca.pem
  for who in server client; do
    file=$([[ $who == client ]] && echo cert || echo server)
    key=$([[ $who == client ]] && echo key || echo server-key)
    openssl req -newkey rsa:2048 -nodes -subj "/CN=$who" -keyout "$key.pem" -out "$who.csr"
    openssl x509 -req -days 2 -in "$who.csr" -CA ca.pem -CAkey ca-key.pem -CAcreateserial -out "$file.pem" \
      -extfile <(printf 'subjectAltName=IP:127.0.0.1\nextendedKeyUsage=%sAuth\n' "$who")
  done
) 2>"$dir/openssl.log" || { cat "$dir/openssl.log" >&2; die "no certificates"; }

start_docker() {
  # What a killed daemon left; a containerd that died with it and was not reaped would be taken for a live one.
  rm -f "$dir/docker.pid" "$dir/docker-exec/containerd/containerd.pid"
  dockerd --iptables=false --ip6tables=false --bridge=none -H "unix://$dir/docker.sock" \
    -H "tcp://127.0.0.1:$tls" --tlsverify --tlscacert "$certs/ca.pem" --tlscert "$certs/server.pem" \
    --tlskey "$certs/server-key.pem" --data-root "$dir/docker" \
    --exec-root "$dir/docker-exec" -p "$dir/docker.pid" >>"$dir/docker.log" 2>&1 &
  docker_pid=$!
  pids+=($docker_pid)
}
start_docker

cat >"$dir/containers.conf" <<END
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1000:1000"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
END
cat >"$dir/storage.conf" <<END
[storage]
driver = "vfs"
graphroot = "$dir/podman"
runroot = "$dir/podman-run"
END
cat >"$dir/registries.conf" <<END
[[registry]]
location = "127.0.0.1:$port"
insecure = true
[[registry]]
location = "127.0.0.1:$guarded"
insecure = true
END
CONTAINERS_CONF=$dir/containers.conf CONTAINERS_STORAGE_CONF=$dir/storage.conf \
  CONTAINERS_REGISTRIES_CONF=$dir/registries.conf \
  podman --volumepath "$dir/podman-volumes" system service --time=0 "unix://$dir/podman.sock" >"$dir/podman.log" 2>&1 &
pids+=($!)

# The same for a user that exists in a mount namespace only, so that the machine gets none.
user=captf-rootless uid=54321
home=$dir/rootless
mkdir -p "$home/run" "$home/etc"
sed -e "s|$dir/podman|$home/podman|" "$dir/storage.conf" >"$home/storage.conf"
cp "$dir/registries.conf" "$home/registries.conf"
grep -v nproc "$dir/containers.conf" >"$home/containers.conf"
sed -i '2i default_ulimits = ["nofile=1024:1024"]' "$home/containers.conf"
(cat /etc/passwd && echo "$user:x:$uid:$uid::$home:/bin/bash") >"$home/etc/passwd"
(cat /etc/group && echo "$user:x:$uid:") >"$home/etc/group"
echo "$user:1000000:65536" | tee "$home/etc/subuid" >"$home/etc/subgid"
touch /etc/subuid /etc/subgid
chown -R "$uid:$uid" "$home"
unshare --mount bash -euc '
  for file in passwd group subuid subgid; do mount --bind "$1/etc/$file" "/etc/$file"; done
  cd "$1"
  exec setpriv --reuid "$2" --regid "$2" --clear-groups env -i PATH="$PATH" HOME="$1" XDG_RUNTIME_DIR="$1/run" \
    CONTAINERS_CONF="$1/containers.conf" CONTAINERS_STORAGE_CONF="$1/storage.conf" \
    CONTAINERS_REGISTRIES_CONF="$1/registries.conf" \
    podman system service --time=0 "unix://$1/podman.sock"
' rootless "$home" "$uid" >"$dir/rootless.log" 2>&1 &
rootless_pid=$!
pids+=($rootless_pid)

docker_answers() { until_answers 60 curl -sf --unix-socket "$dir/docker.sock" http://docker/_ping; }
docker_answers
until_answers 60 curl -sf --unix-socket "$dir/podman.sock" http://docker/_ping
until_answers 60 curl -sf --unix-socket "$home/podman.sock" http://docker/_ping
until_answers 60 curl -sf "http://127.0.0.1:$port/v2/"
until_answers 60 curl -sf -u "tester:$password" "http://127.0.0.1:$guarded/v2/"

printf '{"rootless":"unix://%s/podman.sock","tls":"tcp://127.0.0.1:%s",' "$home" "$tls"
printf '"docker":"unix://%s/docker.sock","podman":"unix://%s/podman.sock","registry":"127.0.0.1:%s",' "$dir" "$dir" "$port"
printf '"guarded":"127.0.0.1:%s","password":"%s","docker_pid":%s}\n' "$guarded" "$password" "$docker_pid"
while read -r line; do
  [[ $line == restart-docker ]] || continue
  start_docker
  docker_answers
  printf '%s\n' "$docker_pid"
done
