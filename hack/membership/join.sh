#!/usr/bin/env bash
# Joins a cluster into a fleet: the steps of docs/how-to/member-clusters.md, and it may be run again at any time.
#
#   HUB_CLUSTER_CONTEXT     kubeconfig context of the hub cluster
#   HUB_CLUSTER_ADDRESS     URL of the hub's API server as the member reaches it
#   MEMBER_CLUSTER          name of the new member
#   MEMBER_CLUSTER_CONTEXT  kubeconfig context of the member cluster
#
# Optional: REGISTRY, MEMBER_AGENT_IMAGE and FLEET_VERSION (the agent's image), MEMBER_AGENT_VALUES (a file with further values of
# the chart), HEARTBEAT_PERIOD_SECONDS (15), TIMEOUT_SECONDS (180).
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
CHART=$HERE/../../charts/member-agent
# shellcheck source=hack/membership/lib.sh
source "$HERE/lib.sh"
TIMEOUT_SECONDS=${TIMEOUT_SECONDS:-180}

register() {
  step "Preparing an account for $MEMBER_CLUSTER on the hub"
  hub get namespace "$FLEET_NAMESPACE" >/dev/null 2>&1 || hub create namespace "$FLEET_NAMESPACE"
  hub -n "$FLEET_NAMESPACE" get serviceaccount "$SERVICE_ACCOUNT" >/dev/null 2>&1 || hub -n "$FLEET_NAMESPACE" create serviceaccount "$SERVICE_ACCOUNT"
  hub apply -f - <<END
apiVersion: v1
kind: Secret
metadata:
  name: $SERVICE_ACCOUNT_SECRET
  namespace: $FLEET_NAMESPACE
  annotations:
    kubernetes.io/service-account.name: $SERVICE_ACCOUNT
type: kubernetes.io/service-account-token
END

  step "Registering $MEMBER_CLUSTER with the hub"
  local known leaving
  known=$(hub get membercluster "$MEMBER_CLUSTER" --ignore-not-found -o 'jsonpath={.spec.identity.kind} {.spec.identity.namespace}/{.spec.identity.name}')
  if [[ -z $known ]]; then
    hub apply -f - <<END
apiVersion: cluster.kubernetes-fleet.io/v1beta1
kind: MemberCluster
metadata:
  name: $MEMBER_CLUSTER
spec:
  identity:
    name: $SERVICE_ACCOUNT
    kind: ServiceAccount
    namespace: $FLEET_NAMESPACE
    apiGroup: ""
  heartbeatPeriodSeconds: ${HEARTBEAT_PERIOD_SECONDS:-15}
END
    return
  fi
  leaving=$(hub get membercluster "$MEMBER_CLUSTER" --ignore-not-found -o 'jsonpath={.metadata.deletionTimestamp}')
  [[ -z $leaving ]] || die "MemberCluster $MEMBER_CLUSTER is leaving the fleet since $leaving; run this again when it is gone:
$(conditions)"
  [[ $known == "ServiceAccount $FLEET_NAMESPACE/$SERVICE_ACCOUNT" ]] ||
    die "MemberCluster $MEMBER_CLUSTER exists with the identity $known, not ServiceAccount $FLEET_NAMESPACE/$SERVICE_ACCOUNT: choose another name, or correct its spec.identity"
  say "MemberCluster $MEMBER_CLUSTER exists already and stays as it is"
}

# read_token waits for the hub to fill the Secret, and for the token to be that of the account as it is now.
read_token() {
  step "Waiting for the token of $SERVICE_ACCOUNT"
  local token="" tries=0 uid
  uid=$(hub -n "$FLEET_NAMESPACE" get serviceaccount "$SERVICE_ACCOUNT" -o 'jsonpath={.metadata.uid}')
  until [[ -n $token ]]; do
    ((++tries <= 60)) || die "the hub has put no token into Secret $FLEET_NAMESPACE/$SERVICE_ACCOUNT_SECRET within a minute: is its kube-controller-manager running?"
    ((tries == 1)) || sleep 1
    token=$(hub -n "$FLEET_NAMESPACE" get secret "$SERVICE_ACCOUNT_SECRET" --ignore-not-found \
      -o "jsonpath={.metadata.annotations.kubernetes\.io/service-account\.uid} {.data.token}")
    if [[ $token == "$uid "?* ]]; then token=${token#* }; else token=""; fi
  done
  TOKEN_DATA=$token
}

# read_ca takes the hub's CA from its context, whether the kubeconfig holds it or names a file.
read_ca() {
  HUB_CA=$(kubectl config view --raw --flatten --minify --context "$HUB_CLUSTER_CONTEXT" -o 'jsonpath={.clusters[0].cluster.certificate-authority-data}')
  [[ -n $HUB_CA ]] || say "The context $HUB_CLUSTER_CONTEXT names no CA, so the member trusts what its system trusts"
}

install_agent() {
  step "Installing the member agent on $MEMBER_CLUSTER"
  member apply --server-side --force-conflicts --field-manager=join.sh -f - <<END
apiVersion: v1
kind: Secret
metadata:
  name: hub-kubeconfig-secret
  namespace: default
type: Opaque
data:
  token: $TOKEN_DATA
END
  local set=(
    --set "config.hubURL=$HUB_CLUSTER_ADDRESS"
    --set "config.memberClusterName=$MEMBER_CLUSTER"
    --set "config.hubCA=$HUB_CA"
    --set "namespace=$FLEET_NAMESPACE"
  )
  [[ -z ${MEMBER_AGENT_VALUES:-} ]] || set+=(--values "$MEMBER_AGENT_VALUES")
  [[ -z ${REGISTRY:-} ]] || set+=(--set "image.repository=$REGISTRY/${MEMBER_AGENT_IMAGE:-muster-agent}")
  [[ -z ${FLEET_VERSION:-} ]] || set+=(--set-string "image.tag=$FLEET_VERSION")
  member_helm -n "$(release_namespace)" upgrade --install member-agent "$CHART" "${set[@]}" >/dev/null
}

why_not() {
  {
    printf '\n%s has not joined within %s s. The hub says:\n' "$MEMBER_CLUSTER" "$TIMEOUT_SECONDS"
    conditions
    printf 'The agent on %s says:\n' "$MEMBER_CLUSTER"
    member -n "$FLEET_NAMESPACE" get pods -l app.kubernetes.io/name=member-agent
    member -n "$FLEET_NAMESPACE" logs -l app.kubernetes.io/name=member-agent --tail=3
  } >&2 || true
}

wait_for_joined() {
  step "Waiting for $MEMBER_CLUSTER to join"
  # A member that was there before is Joined already; that its agent of now is, its pod says.
  if ! hub wait "membercluster/$MEMBER_CLUSTER" --for=condition=Joined --timeout="${TIMEOUT_SECONDS}s" >/dev/null ||
    ! member -n "$FLEET_NAMESPACE" rollout status deployment/member-agent --timeout="${TIMEOUT_SECONDS}s" >/dev/null; then
    why_not
    exit 1
  fi
  hub get membercluster "$MEMBER_CLUSTER"
}

check_tools kubectl helm
check_variables HUB_CLUSTER_CONTEXT HUB_CLUSTER_ADDRESS MEMBER_CLUSTER MEMBER_CLUSTER_CONTEXT
check_name
[[ -z ${MEMBER_AGENT_VALUES:-} || -r $MEMBER_AGENT_VALUES ]] ||
  die "MEMBER_AGENT_VALUES is \"$MEMBER_AGENT_VALUES\", and no such file can be read: name a file with values of the chart member-agent, or unset it"
[[ $HUB_CLUSTER_ADDRESS == https://* ]] || die "HUB_CLUSTER_ADDRESS is \"$HUB_CLUSTER_ADDRESS\": $(meaning HUB_CLUSTER_ADDRESS)"
check_cluster HUB_CLUSTER_CONTEXT
check_cluster MEMBER_CLUSTER_CONTEXT
check_hub
SERVICE_ACCOUNT=$MEMBER_CLUSTER-hub-cluster-access
SERVICE_ACCOUNT_SECRET=$SERVICE_ACCOUNT-token
trap failed ERR
register
read_token
read_ca
install_agent
wait_for_joined
