# shellcheck shell=bash
# What join.sh and leave.sh share: checks, sentences, and how they speak to the two clusters. They never change the current context.
FLEET_NAMESPACE=fleet-system
STEP=""

# kubectl, helm and their answers.
hub() { kubectl --context "$HUB_CLUSTER_CONTEXT" "$@"; }
member() { kubectl --context "$MEMBER_CLUSTER_CONTEXT" "$@"; }
member_helm() { helm --kube-context "$MEMBER_CLUSTER_CONTEXT" "$@"; }

say() { printf '%s\n' "$*"; }
step() { STEP=$*; say "==> $*"; }
die() { printf '\n%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }
failed() { printf '\n%s: this failed: %s. The lines above say why.\n' "${0##*/}" "$STEP" >&2; }

check_tools() {
  local tool
  for tool in "$@"; do
    command -v "$tool" >/dev/null || die "$tool is not installed, or not on the PATH"
  done
}

# check_variables NAME... demands that each has a value, and not the one of the documentation.
check_variables() {
  local name
  for name in "$@"; do
    case ${!name:-} in
      "" | YOUR-*) die "$name is not set: export $name=... ($(meaning "$name"))" ;;
    esac
  done
}

meaning() {
  case $1 in
    HUB_CLUSTER_CONTEXT) echo "the kubeconfig context of the hub cluster" ;;
    HUB_CLUSTER_ADDRESS) echo "the URL of the hub cluster's API server as the member reaches it, such as https://hub.example.com:6443" ;;
    MEMBER_CLUSTER) echo "the name of the new member" ;;
    MEMBER_CLUSTER_CONTEXT) echo "the kubeconfig context of the member cluster" ;;
  esac
}

check_name() {
  [[ ${#MEMBER_CLUSTER} -le 50 && $MEMBER_CLUSTER =~ ^[a-z0-9]([-a-z0-9]*[a-z0-9])?$ ]] ||
    die "MEMBER_CLUSTER is \"$MEMBER_CLUSTER\": a member's name has at most 50 lower-case letters, digits and '-', and begins and ends with a letter or digit"
}

# check_cluster VARIABLE says whether the context that it names exists and its cluster answers.
check_cluster() {
  local context=${!1}
  kubectl config get-contexts "$context" >/dev/null 2>&1 ||
    die "the kubeconfig has no context \"$context\" ($1); it has: $(kubectl config get-contexts -o name | tr '\n' ' ')"
  kubectl --context "$context" --request-timeout=15s get --raw /version >/dev/null ||
    die "the cluster of context \"$context\" ($1) does not answer; the line above says why"
}

check_hub() {
  [[ -n $(hub get --raw /apis/cluster.kubernetes-fleet.io/v1beta1 2>/dev/null | tr ',' '\n' | grep '"name":"memberclusters"') ]] ||
    die "the cluster of context \"$HUB_CLUSTER_CONTEXT\" knows no MemberCluster: is it the hub? Install the charts fleet-crd and fleet there"
}

# conditions prints what the hub says about the member.
conditions() {
  local said
  said=$(hub get membercluster "$MEMBER_CLUSTER" -o 'jsonpath={range .status.conditions[*]}    {.type}={.status} ({.reason}): {.message}{"\n"}{end}')
  say "${said:-    nothing: is muster-hub running there?}"
}

# release_namespace prints where the release member-agent is: where the how-to puts it, unless somebody installed it in fleet-system.
release_namespace() {
  if member_helm -n "$FLEET_NAMESPACE" status member-agent >/dev/null 2>&1; then
    echo "$FLEET_NAMESPACE"
  else
    echo default
  fi
}
