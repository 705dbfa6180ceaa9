# shellcheck shell=bash
# The parts of demo.sh that are not the story: checks, starting and stopping, and what is said when it fails.
# It expects ROOT, DEMO and CLUSTERS to be set.
STARTED=()   # the processes of localkube
STEP=""      # what is going on, for the sentence of a failure
OURS=""      # whether .demo is this process's to remove
INTERRUPTED=""

say() { if [[ -t 1 ]]; then printf '\n\033[1m%s\033[0m\n' "$*"; else printf '\n%s\n' "$*"; fi; }
die() { printf '\ndemo: %s\n' "$*" >&2; exit 1; }
step() { STEP=$*; say "$*"; }
# run shows a command and runs it.
run() { printf '$ %s\n' "$*"; "$@"; }
# fleet COMMAND... shows a command and runs it with the contexts of all clusters.
fleet() { KUBECONFIG=$DEMO/kubeconfig run "$@" 2>/dev/null; }
# on CLUSTER COMMAND... runs a command against a cluster.
on() { KUBECONFIG=$DEMO/clusters/$1/kubeconfig "${@:2}"; }

check_tools() {
  local tool version
  for tool in go git make; do
    command -v "$tool" >/dev/null || die "$tool is not installed, or not on the PATH. The demo needs Go 1.26 or newer (https://go.dev/dl/), git and make, and nothing else."
  done
  version=$(go env GOVERSION 2>&1) || die "Go cannot work here: $version"
  [[ $version =~ ^go1\.([0-9]+) && ${BASH_REMATCH[1]} -ge 26 ]] ||
    die "this is $version; the demo needs Go 1.26 or newer: https://go.dev/dl/"
}

# is_demo PID says whether a process is a demo that runs.
is_demo() {
  kill -0 "$1" 2>/dev/null || return 1
  { tr '\0' ' ' <"/proc/$1/cmdline" || ps -o args= -p "$1"; } 2>/dev/null | grep -q 'demo\.sh'
}

check_leftovers() {
  [[ -e $DEMO ]] || return 0
  local pid
  pid=$(cat "$DEMO/pid" 2>/dev/null || true)
  if [[ -n $pid ]] && is_demo "$pid"; then
    die "a demo runs here already, as process $pid. Use it with: source .demo/env
      Or stop it: Ctrl-C in its terminal, or kill $pid"
  fi
  say "Removing what a demo that was killed left behind"
  [[ ! -x bin/localkube ]] || for name in "${CLUSTERS[@]}"; do
    [[ ! -d $DEMO/clusters/$name ]] || bin/localkube delete "$name" --dir "$DEMO/clusters" ||
      die "cluster $name of an earlier demo cannot be removed; the line above says why"
  done
  rm -rf "$DEMO" || die ".demo is of an earlier demo and cannot be removed; remove it by hand: rm -rf .demo"
}

build() {
  if make -q bin/localkube bin/kubectl bin/helm 2>/dev/null; then
    step "Building the hub and the agent into bin/"
  else
    step "Building a Kubernetes, kubectl, Helm, the hub and the agent into bin/"
    echo "The first time this takes about ten minutes on two cores and fetches about 1 GB of Go modules; later it takes seconds."
  fi
  make build || die "the build failed; the lines above say why"
}

# start_cluster NAME [FLAGS...] starts a cluster in a process group of its own, so that Ctrl-C reaches only this script.
start_cluster() {
  local name=$1
  set -m
  "$ROOT/bin/localkube" up "$name" --dir "$DEMO/clusters" --ready-file "$DEMO/$name.ready" "${@:2}" >"$DEMO/log/$name.log" 2>&1 </dev/null &
  STARTED+=($!)
  set +m
}

# serve_repositories serves the repositories of the demo in a process group of its own, and sets REPOSITORIES to the address.
serve_repositories() {
  (cd "$ROOT" && go build -trimpath -o "$DEMO/gitserver" ./hack/gitserver)
  set -m
  "$DEMO/gitserver" repositories repositories.address >"$DEMO/log/gitserver.log" 2>&1 </dev/null &
  STARTED+=($!)
  set +m
  while [[ ! -s repositories.address ]]; do
    kill -0 "${STARTED[-1]}" 2>/dev/null || { cat "$DEMO/log/gitserver.log" >&2; die "the Git server of the demo ended at its start"; }
    sleep 0.1
  done
  REPOSITORIES=$(cat repositories.address)
}

wait_for_clusters() {
  local i name
  for i in "${!CLUSTERS[@]}"; do
    name=${CLUSTERS[$i]}
    while [[ ! -e $DEMO/$name.ready ]]; do
      kill -0 "${STARTED[$i]}" 2>/dev/null || { cat "$DEMO/log/$name.log" >&2; die "cluster $name ended at its start; the lines above are its output"; }
      sleep 0.2
    done
    tail -n 1 "$DEMO/log/$name.log"
  done
}

write_env() {
  local file=""
  for name in "${CLUSTERS[@]}"; do file+=:$DEMO/clusters/$name/kubeconfig; done
  KUBECONFIG=${file#:} kubectl config view --flatten >"$DEMO/kubeconfig"
  chmod 600 "$DEMO/kubeconfig"
  # What an admin hands out: the charts, with the CA of this hub in that of the member agent, and the scripts.
  mkdir "$DEMO/fleet"
  cp -r "$ROOT"/charts/*/ "$DEMO/fleet"
  base64 -d <<<"$API_SERVER_CA_DATA" >"$DEMO/fleet/member-agent/hub-ca.crt"
  ln -s . "$DEMO/fleet/charts"
  ln -s "$ROOT/hack" "$DEMO/fleet/hack"
  cat >"$DEMO/env" <<END
# Source this: kubectl and helm are on the path, the contexts are hub, cluster1, cluster2 and cluster3, and fleet/ has the charts and hack/.
export PATH="$ROOT/bin:\$PATH"
export KUBECONFIG="$DEMO/kubeconfig"
export HELM_CACHE_HOME="$DEMO/helm/cache" HELM_CONFIG_HOME="$DEMO/helm/config" HELM_DATA_HOME="$DEMO/helm/data"
API_SERVER_URL="$API_SERVER_URL"
API_SERVER_CA_DATA="$API_SERVER_CA_DATA"
cd "$DEMO"
END
}

# diagnose prints what the clusters say, after a failure.
diagnose() {
  printf '\ndemo: it failed here: %s\n' "$STEP" >&2
  [[ -e $DEMO/hub.ready ]] || return 0
  {
    echo "--- the hub's view"
    on hub kubectl get clusterregistrationtokens -A -o 'custom-columns=TOKEN:.metadata.name,STATUS:.status.conditions[*].message'
    on hub kubectl get clusterregistrations,clusters.fleet.cattle.io -A
    for name in "${CLUSTERS[@]}"; do
      echo "--- $name"
      on "$name" kubectl -n cattle-fleet-system get pods
      on "$name" kubectl -n cattle-fleet-system get events --sort-by=.lastTimestamp | tail -n 8
      on "$name" kubectl -n cattle-fleet-system logs --prefix --tail=20 -l 'app in (fleet-agent,fleet-controller,fleet-gitops)'
    done
  } >&2 2>&1 || true
}

finish() {
  local status=$? out pid name
  trap '' INT TERM HUP
  trap - EXIT
  [[ $status -eq 0 || -n $INTERRUPTED ]] || diagnose
  if [[ -n $OURS ]]; then
    say "Stopping the clusters"
    cd "$ROOT"
    for pid in ${STARTED[@]+"${STARTED[@]}"}; do kill -TERM "$pid" 2>/dev/null || true; done
    for pid in ${STARTED[@]+"${STARTED[@]}"}; do wait "$pid" 2>/dev/null || true; done
    for name in "${CLUSTERS[@]}"; do
      [[ ! -d $DEMO/clusters/$name ]] || out=$(bin/localkube delete "$name" --dir "$DEMO/clusters" 2>&1) || { echo "$out" >&2; status=1; }
    done
    rm -rf "$DEMO"
    echo "Nothing is left but the programs in bin/."
  fi
  exit "$status"
}
