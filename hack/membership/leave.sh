#!/usr/bin/env bash
# Takes a cluster out of its fleet and removes what join.sh made: it may be run again at any time.
#
#   HUB_CLUSTER_CONTEXT     kubeconfig context of the hub cluster
#   MEMBER_CLUSTER          name of the member
#   MEMBER_CLUSTER_CONTEXT  kubeconfig context of the member cluster
#
# Optional: TIMEOUT_SECONDS (180).
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=hack/membership/lib.sh
source "$HERE/lib.sh"
TIMEOUT_SECONDS=${TIMEOUT_SECONDS:-180}

leave() {
  step "Deleting MemberCluster $MEMBER_CLUSTER"
  hub delete membercluster "$MEMBER_CLUSTER" --ignore-not-found --wait=false
  local tries=0
  while [[ -n $(hub get membercluster "$MEMBER_CLUSTER" --ignore-not-found -o name) ]]; do
    if ((++tries > TIMEOUT_SECONDS)); then
      printf '\n%s has not left within %s s. The hub says:\n' "$MEMBER_CLUSTER" "$TIMEOUT_SECONDS" >&2
      conditions >&2
      die "nothing was removed from $MEMBER_CLUSTER; run this again when the hub is done"
    fi
    sleep 1
  done
}

remove_agent() {
  step "Removing the member agent from $MEMBER_CLUSTER"
  member_helm -n "$(release_namespace)" uninstall member-agent --ignore-not-found --wait
  member -n default delete secret hub-kubeconfig-secret --ignore-not-found
}

remove_account() {
  step "Removing the account of $MEMBER_CLUSTER from the hub"
  hub -n "$FLEET_NAMESPACE" delete secret "$SERVICE_ACCOUNT_SECRET" --ignore-not-found
  hub -n "$FLEET_NAMESPACE" delete serviceaccount "$SERVICE_ACCOUNT" --ignore-not-found
}

check_tools kubectl helm
check_variables HUB_CLUSTER_CONTEXT MEMBER_CLUSTER MEMBER_CLUSTER_CONTEXT
check_name
check_cluster HUB_CLUSTER_CONTEXT
check_cluster MEMBER_CLUSTER_CONTEXT
check_hub
SERVICE_ACCOUNT=$MEMBER_CLUSTER-hub-cluster-access
SERVICE_ACCOUNT_SECRET=$SERVICE_ACCOUNT-token
trap failed ERR
leave
remove_agent
remove_account
say "$MEMBER_CLUSTER has left the fleet."
