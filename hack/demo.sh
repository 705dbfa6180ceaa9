#!/usr/bin/env bash
# Four real Kubernetes clusters on this machine: a hub, two clusters that register with it by token, and one that it registers itself.
# In a terminal it runs until Ctrl-C; without one it ends after the table. Either way it leaves nothing behind but bin/.
set -euo pipefail
cd "$(dirname "$0")/.."
ROOT=$PWD
DEMO=$ROOT/.demo
CLUSTERS=(hub cluster1 cluster2 cluster3)
# shellcheck source=hack/demo-lib.sh
source hack/demo-lib.sh

install_hub() {
  fleet muster init --context hub --set importLoopback=true --set gitops.allowLoopback=true
}

create_token() {
  run kubectl create namespace clusters
  cat >token.yaml <<END
kind: ClusterRegistrationToken
apiVersion: "fleet.cattle.io/v1alpha1"
metadata:
  name: new-token
  namespace: clusters
spec:
  # A duration string for how long this token is valid for. A value <= 0 or null means infinite time.
  ttl: 240h
END
  run kubectl apply -f token.yaml
  printf '$ %s\n' "while ! kubectl --namespace=clusters get secret new-token; do sleep 1; done"
  local tries=0
  while ! kubectl --namespace=clusters get secret new-token 2>/dev/null; do
    ((++tries < 60)) || die "the hub has not answered the token within a minute"
    sleep 1
  done
  printf '$ %s\n' "kubectl --namespace clusters get secret new-token -o 'jsonpath={.data.values}' | base64 --decode > values.yaml"
  kubectl --namespace clusters get secret new-token -o 'jsonpath={.data.values}' | base64 --decode >values.yaml
}

register_new() {
  local CLUSTER_LABELS="--set-string labels.example=true --set-string labels.env=dev"
  cat <<'END'
$ CLUSTER_LABELS="--set-string labels.example=true --set-string labels.env=dev"
$ helm -n cattle-fleet-system install --create-namespace --wait $CLUSTER_LABELS --values values.yaml \
    --set apiServerCA="$API_SERVER_CA_DATA" --set apiServerURL="$API_SERVER_URL" fleet-agent fleet/fleet-agent
END
  # shellcheck disable=SC2086 # two words per label, as in the guide
  on cluster1 helm -n cattle-fleet-system install --create-namespace --wait --timeout 2m $CLUSTER_LABELS --values values.yaml \
    --set apiServerCA="$API_SERVER_CA_DATA" --set apiServerURL="$API_SERVER_URL" fleet-agent fleet/fleet-agent >/dev/null
}

register_predefined() {
  cat >cluster.yaml <<'END'
kind: Cluster
apiVersion: fleet.cattle.io/v1alpha1
metadata:
  name: my-cluster
  namespace: clusters
spec:
  clientID: "really-random"
END
  run kubectl apply -f cluster.yaml
  fleet muster join --context cluster2 --hub-context hub --name my-cluster
}

import_cluster() {
  printf '$ %s\n' "kubectl -n clusters create secret generic my-import-kubeconfig --from-file=value=cluster3.kubeconfig"
  kubectl -n clusters create secret generic my-import-kubeconfig --from-file=value="$DEMO/clusters/cluster3/kubeconfig"
  cat >import.yaml <<'END'
kind: Cluster
apiVersion: fleet.cattle.io/v1alpha1
metadata:
  name: my-import
  namespace: clusters
  labels:
    demo: "true"
    env: dev
spec:
  kubeConfigSecret: my-import-kubeconfig
END
  run kubectl apply -f import.yaml
  kubectl -n clusters wait clusters.fleet.cattle.io my-import --for=condition=Ready --timeout=60s >/dev/null
}

deliver_bundle() {
  cat >bundle.yaml <<'END'
kind: Bundle
apiVersion: fleet.cattle.io/v1alpha1
metadata:
  name: greeting
spec:
  defaultNamespace: greeting
  resources:
    - name: greeting.yaml
      content: |
        apiVersion: v1
        kind: ConfigMap
        metadata:
          name: greeting
        data:
          hello: fleet
  targets:
    - clusterSelector: {}
END
  run kubectl -n clusters apply -f bundle.yaml
  run kubectl -n fleet-local apply -f bundle.yaml
  kubectl wait -A clusters.fleet.cattle.io --all --for=condition=AgentUpToDate --timeout=60s >/dev/null
  kubectl wait -A bundles.fleet.cattle.io --all --for=condition=Ready --timeout=60s >/dev/null
  run kubectl get bundles.fleet.cattle.io -A
  printf "$ %s\n" "kubectl --context cluster1 -n greeting get configmap greeting -o jsonpath={.data.hello}"
  on cluster1 kubectl -n greeting get configmap greeting -o 'jsonpath={.data.hello}{"\n"}'
}

# deliver_repository serves a repository with one directory, and follows it with a GitRepo.
deliver_repository() {
  local git=(git -C work -c user.name=demo -c user.email=demo@example.com)
  git init --quiet --bare --initial-branch=main repositories/shop.git
  git init --quiet --initial-branch=main work
  mkdir work/web
  cat >work/web/fleet.yaml <<'END'
defaultNamespace: shop
END
  cat >work/web/web.yaml <<'END'
apiVersion: v1
kind: ConfigMap
metadata:
  name: web
data:
  from: a commit
END
  "${git[@]}" add --all
  "${git[@]}" commit --quiet --message "Add the shop"
  "${git[@]}" push --quiet "$DEMO/repositories/shop.git" HEAD:main
  serve_repositories
  cat >gitrepo.yaml <<END
kind: GitRepo
apiVersion: fleet.cattle.io/v1alpha1
metadata:
  name: shop
  namespace: clusters
spec:
  repo: $REPOSITORIES/shop.git
  branch: main
  targets:
    - clusterSelector: {}
END
  run kubectl apply -f gitrepo.yaml
  kubectl -n clusters wait gitrepos.fleet.cattle.io shop --for=condition=Ready --timeout=120s >/dev/null
  run kubectl -n clusters get gitrepos.fleet.cattle.io
  printf "$ %s\n" "kubectl --context cluster1 -n shop get configmap web -o jsonpath={.data.from}"
  on cluster1 kubectl -n shop get configmap web -o 'jsonpath={.data.from}{"\n"}'
}

show_fleet() {
  kubectl wait -A clusters.fleet.cattle.io --all --for=jsonpath='{.status.display.readyNodes}'=1/1 --timeout=60s >/dev/null
  kubectl wait -A clusters.fleet.cattle.io --all --for=jsonpath='{.status.agent.lastSeen}' --timeout=60s >/dev/null
  kubectl -n clusters wait clusters.fleet.cattle.io --all --for=jsonpath='{.status.display.readyBundles}'=3/3 --timeout=60s >/dev/null
  kubectl -n fleet-local wait clusters.fleet.cattle.io --all --for=jsonpath='{.status.display.readyBundles}'=2/2 --timeout=60s >/dev/null
  run kubectl get clusters.fleet.cattle.io -A
}

how_to_go_on() {
  cat <<END

The fleet is up. To use it, in another terminal:

    source $DEMO/env

Then kubectl, helm and muster speak to the hub; the other contexts are cluster1, cluster2 and cluster3:

    muster get
    muster explain
    muster dashboard --context hub
    muster get repos
    kubectl -n clusters get clusters.fleet.cattle.io --show-labels
    kubectl -n clusters get clusterregistrations,clusterregistrationtokens
    kubectl --context cluster1 -n cattle-fleet-system logs -l app=fleet-agent
    kubectl --context cluster1 -n cattle-fleet-system get pods -l app=fleet-agent
    localkube list --dir $DEMO/clusters

For the commands of docs/how-to, put these contexts in the place of edge-1 and the like. The charts are there as fleet/..., so that
\`helm repo add fleet ...\` can be left out, and hack/ as fleet/hack/. The nodes run Pods as processes, to which no \`kubectl port-forward\` leads.

Ctrl-C stops the four clusters and removes all of it.
END
}

check_tools
check_leftovers
build
mkdir -p "$DEMO/log" "$DEMO/clusters"
echo $$ >"$DEMO/pid"
OURS=yes
trap finish EXIT
trap 'INTERRUPTED=yes; exit 130' INT TERM HUP

export PATH="$ROOT/bin:$PATH" HELM_CACHE_HOME=$DEMO/helm/cache HELM_CONFIG_HOME=$DEMO/helm/config HELM_DATA_HOME=$DEMO/helm/data
step "Starting four clusters: ${CLUSTERS[*]}"
for name in "${CLUSTERS[@]}"; do
  start_cluster "$name" --image "muster-hub=$ROOT/bin/muster-hub" --image "muster-agent=$ROOT/bin/muster-agent" --image "member-agent=$ROOT/bin/muster-agent"
done
wait_for_clusters
export KUBECONFIG=$DEMO/clusters/hub/kubeconfig
API_SERVER_URL=$(kubectl config view --raw -o 'jsonpath={.clusters[0].cluster.server}')
API_SERVER_CA_DATA=$(kubectl config view --raw -o 'jsonpath={.clusters[0].cluster.certificate-authority-data}')
write_env
cd "$DEMO"

step "Installing the hub on cluster hub"
install_hub
step "Creating a registration token"
create_token
step "Registering cluster1 as a new cluster, with labels"
register_new
step "Registering cluster2 as the predefined cluster my-cluster"
register_predefined
step "Letting the hub register cluster3, by its kubeconfig"
import_cluster
step "Delivering a Bundle to all clusters of both workspaces"
deliver_bundle
step "Delivering a commit of a Git repository to the clusters of a workspace"
deliver_repository
step "The fleet"
show_fleet

if [[ -t 0 && -t 1 ]]; then
  how_to_go_on
  trap 'exit 0' INT TERM HUP
  STEP="waiting for Ctrl-C: a cluster has ended by itself"
  while sleep 1; do
    for pid in "${STARTED[@]}"; do kill -0 "$pid" 2>/dev/null || exit 1; done
  done
fi
