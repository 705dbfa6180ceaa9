# The examples of the help of muster and those of the README, each a line of its own, in an order in which they work: on clusters hub, edge-1, edge-2 and new-hub, of which none is a hub yet.
# What stands for something in them becomes that here.
muster() {
  echo "=== muster $*" >&2
  local words=("${@//request-x7k2p/${request-}}")
  words=("${words[@]/%TOKEN/${token-}}")
  words=("${words[@]/%BASE64/${ca-}}")
  local as=command
  [ $BASHPID = $$ ] || as=exec # in the background, so that it is what a signal is sent to
  $as muster "${words[@]//https:\/\/hub.example.com:6443/$API_SERVER_URL}"
}
delete_token() { kubectl -n clusters delete clusterregistrationtokens.fleet.cattle.io web; }

muster init --context hub --dry-run
muster init --context hub --print > hub.yaml
muster init --context hub
muster init --context hub --hub-url https://hub.example.com:6443
muster init --context hub --hub-url https://hub.example.com:6443 --set controller.replicas=2
muster doctor --hub-context hub
echo "correct horse battery staple" > passphrase.txt
muster backup --context hub --output hub.age --passphrase-file passphrase.txt
mv hub.age early.age
kubectl create namespace clusters
kubectl label namespace clusters muster/approve-members=true

muster token create web
delete_token
muster token create web --ttl 0 --max 0
delete_token
muster token create web --output values > values.yaml
delete_token
muster token create web --cluster web --label stamped.muster/env=prod --approve
token=$(muster token create web --cluster web --label stamped.muster/env=prod --approve --output token)
ca=$(kubectl config view --raw --minify --flatten -o 'jsonpath={.clusters[0].cluster.certificate-authority-data}')
muster doctor --context edge-1 --hub-context hub
muster join --context edge-1 --token TOKEN --hub-url https://hub.example.com:6443 --hub-ca BASE64 &
joining=$!
until request=$(kubectl -n clusters get clusterregistrations -o 'jsonpath={.items[?(@.status.state=="Pending")].metadata.name}') && [ -n "$request" ]; do sleep 1; done
muster get requests
muster explain requests clusters/request-x7k2p
muster deny request-x7k2p --reason "not a cluster of this team"
muster approve request-x7k2p
muster approve request-x7k2p --reason "ticket 4711"
wait $joining

muster approve clusters clusters/web
muster label clusters/web env=prod region=eu
muster rename clusters/web "Web shop" --description "Frankfurt, rack 7; call the shop team first"
muster rename clusters/web ""
muster cordon clusters/web
muster cordon clusters/web --undo
muster quarantine clusters/web --reason "suspicious traffic, see ticket 4711"
muster quarantine clusters/web --undo
muster drain clusters/web --dry-run
muster drain clusters/web
muster drain clusters/web --undo
muster uncordon clusters/web
muster taint clusters/web dedicated=gpu:NoSchedule
muster taint clusters/web dedicated-
muster get
muster get --sort-by version
muster get --sort-by .metadata.creationTimestamp
muster get clusters --namespace clusters --selector env=prod --output wide
muster use hub
muster version
muster version --client
muster events
muster events clusters/web --warnings
muster events --watch &
watching=$!
sleep 3
kill $watching
muster wait clusters/web --for ready --timeout 10m
muster logs clusters/web --member-context edge-1
muster logs clusters/web --member-context edge-1 --follow &
following=$!
sleep 3
kill $following
muster get clusters --namespace clusters --watch &
watching=$!
sleep 3
kill $watching
muster watch &
watching=$!
sleep 3
kill $watching
muster watch clusters --namespace clusters --selector env=prod &
watching=$!
sleep 3
kill $watching
muster dashboard --context hub &
showing=$!
muster dashboard --namespace clusters --port 8800 --no-browser &
showing="$showing $!"
muster open clusters/web &
showing="$showing $!"
sleep 3
kill $showing
muster explain
muster token list --namespace clusters
muster token show clusters/web --output helm
muster token rotate clusters/web
muster token rotate clusters/web --overlap 0
muster token revoke clusters/web --yes
muster explain clusters/web
muster explain web
muster explain web --output json
muster explain web --member-context edge-1
muster tree clusters/web
kubectl create -f - <<EOF
{apiVersion: fleet.cattle.io/v1alpha1, kind: Bundle, metadata: {namespace: clusters, name: web}}
EOF
muster explain bundles clusters/web
muster explain bundle/web cluster/web
muster get bundles --output name | xargs -n 1 muster explain
muster pause bundles/web
muster pause bundles/web --undo
muster confirm bundles clusters/web
muster confirm bundles clusters/web --yes
mkdir -p repository/apps/web
cd repository
printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: greeting}\n' > apps/web/greeting.yaml
printf 'targets: [{clusterSelector: {matchLabels: {env: none}}}]\n' > targets.yaml
muster bundle .
muster bundle . --name web --targets-file targets.yaml | kubectl apply -f -
muster bundle . --name web --targets-file targets.yaml --diff
muster retry bundles/web
kubectl -n clusters delete bundles.fleet.cattle.io web
muster bundle . --render --cluster clusters/web
muster bundle . --targets-file targets.yaml --render --labels env=prod,region=eu
muster bundle . --path 'apps/*' -o name
cd ..
muster support-bundle --context edge-1 --file edge-1.tar.gz
muster support-bundle --context hub
muster support-bundle --file - | tar tz
muster backup --context hub --output hub.age --recipient age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p
rm hub.age
muster revoke clusters/web
muster revoke clusters/web --undo

muster doctor --leftovers --context edge-1
helm --kube-context edge-1 -n cattle-fleet-system uninstall --wait fleet-agent
muster doctor --leftovers --context edge-1 --remove --yes
kubectl --context edge-1 delete namespace cattle-fleet-system --ignore-not-found
muster join --context edge-1 --hub-context hub --member --name edge-1
kubectl config view --raw --minify --flatten --context hub > hub.yaml
kubectl --kubeconfig hub.yaml config set-credentials agent --token "$(kubectl -n fleet-system create token edge-1-hub-cluster-access)"
kubectl --kubeconfig hub.yaml config set-context --current --user agent
muster join --context edge-1 --member --name edge-1 --hub-kubeconfig hub.yaml
muster get clusters/web edge-1 --output json
kubectl create -f - <<EOF
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: shop}
spec:
  resourceSelectors: [{group: "", version: v1, kind: Namespace, name: none}]
  policy: {placementType: PickFixed, clusterNames: [edge-1]}
  strategy: {type: External}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterStagedUpdateStrategy
metadata: {name: canary-first}
spec: {stages: [{name: canary, labelSelector: {}, beforeStageTasks: [{type: Approval}]}]}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterStagedUpdateRun
metadata: {name: shop-v2}
spec: {placementName: shop, stagedRolloutStrategyName: canary-first, state: Run}
EOF
until kubectl get clusterapprovalrequest shop-v2-before-canary; do sleep 1; done
muster get runs
muster explain runs shop-v2
muster approve runs shop-v2
kubectl delete clusterstagedupdaterun/shop-v2 clusterresourceplacement/shop
muster tree edge-1
muster label edge-1 region-
muster leave edge-1 --delete
helm --kube-context edge-1 -n default uninstall --wait member-agent
muster leave clusters/web --orphan
muster wait clusters/web --for gone

kubectl label namespace clusters muster/approve-members-
muster join --context edge-1 --hub-context hub --namespace clusters --name edge-1 --labels env=prod,region=eu
muster join --context edge-1 --hub-context hub
muster join --context edge-2 --hub-context hub --member
muster leave edge-2 --delete --uninstall-agent
kubectl create namespace retail
muster move clusters/edge-1 --context edge-1 --hub-context hub --namespace retail
muster move --context edge-1 --hub-context hub --namespace retail
command muster init --context new-hub
kubectl --context new-hub -n cattle-fleet-system scale deployment fleet-controller --replicas=0
kubectl --context new-hub -n cattle-fleet-system wait --for=delete pod -l app=fleet-controller --timeout=1m
mv early.age hub.age
muster restore hub.age --context new-hub --passphrase-file passphrase.txt
kubectl --context new-hub -n cattle-fleet-system scale deployment fleet-controller --replicas=1
until muster doctor --hub-context new-hub; do sleep 1; done
muster hub status --context hub
muster hub status
muster hub status --exit-code
muster move --context edge-1 --hub-context new-hub
muster hub standby-token --context new-hub | kubectl --context hub apply -f -
muster hub demote --context hub --yes
muster hub promote --context new-hub --yes
muster hub promote --context new-hub --above 7 --yes
