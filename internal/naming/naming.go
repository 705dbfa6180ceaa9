// Package naming derives every name common to the hub, its agents and upstream agents.
//
// Its invariant: the functions are pure and their results never change between versions. The golden
// vectors in the test come from the upstream system.
package naming

import (
	"regexp"
	"strconv"
	"strings"
)

// Names without parameters.
const (
	// SystemNamespace is the default namespace of hub and agent.
	SystemNamespace = "cattle-fleet-system"
	// MemberSystemNamespace is the namespace for the identities of MemberClusters on the hub, and the
	// default namespace of their agents on the members.
	MemberSystemNamespace = "fleet-system"
	// AgentBootstrapSecret holds the registration token on the member until the agent has joined.
	AgentBootstrapSecret = "fleet-agent-bootstrap"
	// AgentKeySecret holds the agent's key on the member; the hub recognizes the agent by it.
	AgentKeySecret = "fleet-agent-key"
	// AgentSecret holds the agent's own credential on the member.
	AgentSecret = "fleet-agent"
	// AgentConfigMap holds the agent's settings on the member.
	AgentConfigMap = "fleet-agent"
	// HostedAgentConfigMap marks a cluster whose agent runs on another cluster, in the agent's
	// namespace on the member.
	HostedAgentConfigMap = "muster-hosted-agent"
	// AgentLease is the Lease in the agent's namespace for limiting deployment to one deployer at a
	// time. Agents of Rancher Fleet take it too.
	AgentLease = "fleet-agent"
	// MemberAgentLease is the same Lease for the agent of a MemberCluster.
	MemberAgentLease = "member-agent"
	// LearnedHubConfigMap has the address requested by the hub for the agent of a MemberCluster, in
	// the agent's namespace.
	LearnedHubConfigMap = "member-agent-hub"
	// MemberAgentCredentialSecret holds the issued credential of the agent of a MemberCluster, in the
	// agent's namespace.
	MemberAgentCredentialSecret = "member-agent-credential"
	// HubTokenSecret is the default name of the Secret with the user's token for the agent of a
	// MemberCluster.
	HubTokenSecret = "hub-kubeconfig-secret"
	// HubKubeconfigSecret is the Secret that muster join makes for an agent's kubeconfig of the hub,
	// in the agent's namespace.
	HubKubeconfigSecret = "muster-hub-kubeconfig"
	// LabelObjectSet is a label of each object that a Bundle deploys.
	LabelObjectSet = "objectset.rio.cattle.io/hash"
	// HubConfigMap holds the hub's settings in its system namespace.
	HubConfigMap = "fleet-controller"
	// HubLease is the Lease of the leading hub, in its system namespace.
	HubLease = "muster-hub"
	// HubIdentitySecret holds the key and the term of the hub, in its system namespace.
	HubIdentitySecret = "muster-hub-identity"
	// ObeyedTermConfigMap has the highest term of the hub that the agent obeys, in the agent's
	// namespace.
	ObeyedTermConfigMap = "muster-hub-term"
	// GitOpsAccount is the account of the program for Git repositories, in the hub's system namespace,
	// and the Role for the Secrets of a workspace.
	GitOpsAccount = "fleet-gitops"
	// HubServiceAccount is the account of the hub, in its system namespace.
	HubServiceAccount = "fleet-controller"
	// MemberServiceAccount is the identity of a member, in its member namespace.
	MemberServiceAccount = "agent"
	// MemberReconnectAccount is the account in the member namespace for the agent of a MemberCluster
	// to come back after its credential has expired. Hubs of earlier versions also had a Role and a
	// RoleBinding with this name.
	MemberReconnectAccount = "agent-reconnect"
	// HeartbeatLease is the Lease renewed by an agent, in its member namespace.
	HeartbeatLease = "heartbeat"
	// LabelMember is the label of the history of a release on the member for the UID of the member's
	// report.
	LabelMember            = "muster/member"
	credentialSecretPrefix = "c-"
)

const (
	memberClusterNamespacePrefix = "fleet-member-"
	// MaxMemberClusterName is the maximum length of a MemberCluster's name: its member namespace must
	// be a DNS label.
	MaxMemberClusterName = maxName - len(memberClusterNamespacePrefix)
	// maxName is the maximum length of a label value or the name of a namespace.
	maxName = 63
	// keyHashInput is the number of characters of a string in KeyHash.
	keyHashInput = 100
)

var (
	endsInAlphanumeric = regexp.MustCompile(`[a-z0-9]$`)
	isLabel            = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)
	notInLabel         = regexp.MustCompile(`[^a-z0-9]+`)
)

// SafeConcat joins parts with dashes. It replaces the end of a result above 63 characters by a hash
// of the whole.
func SafeConcat(parts ...string) string {
	full := strings.Join(parts, "-")
	if len(full) <= maxName {
		return full
	}
	digest := Digest(full)
	if head := full[:57]; endsInAlphanumeric.MatchString(head) {
		return head + "-" + digest[:5]
	}
	return strings.TrimRight(full[:56], "-") + "-" + digest[:6]
}

// CleanCluster returns the name of the Cluster for a cluster of another system. It is the name
// there if a Cluster can have it, else a similar one with a hash.
func CleanCluster(name string) string {
	if len(name) <= maxName && isLabel.MatchString(name) {
		return name
	}
	clean := strings.Trim(notInLabel.ReplaceAllString(strings.ToLower(name), "-"), "-")
	clean = strings.TrimRight(clean[:min(len(clean), maxName-len("-01234"))], "-")
	return strings.TrimLeft(clean+"-"+Digest(name)[:5], "-")
}

// KeyHash returns a 12 character digest of the first 100 characters of s.
func KeyHash(s string) string {
	if len(s) > keyHashInput {
		s = s[:keyHashInput]
	}
	return Digest(s)[:12]
}

// Cluster returns the name of the Cluster to create for a new client ID.
func Cluster(clientID string) string { return "cluster-" + KeyHash(clientID) }

// MemberNamespace returns the member namespace of a Cluster.
func MemberNamespace(workspace, cluster string) string {
	return SafeConcat("cluster", workspace, cluster, KeyHash(workspace+"::"+cluster))
}

// MemberNamespaceAt returns the member namespace of a Cluster after a number of revocations. The
// epoch stands first, because KeyHash does not read the end of a long string.
func MemberNamespaceAt(epoch int, workspace, cluster string) string {
	if epoch == 0 {
		return MemberNamespace(workspace, cluster)
	}
	return SafeConcat("cluster", workspace, cluster, KeyHash(strconv.Itoa(epoch)+"::"+workspace+"::"+cluster))
}

// longDigest is the number of hexadecimal digits of a digest in the long form of a name: 64 bits.
const longDigest = 16

// LongMemberNamespaceAt returns the other form of MemberNamespaceAt; agents of Muster know both. It
// cuts the end of a long name before the digest, never a part of the digest. The namespace of epoch
// 0 has no long form.
func LongMemberNamespaceAt(epoch int, workspace, cluster string) string {
	if epoch == 0 {
		return MemberNamespace(workspace, cluster)
	}
	head := "cluster-" + workspace + "-" + cluster
	head = head[:min(len(head), maxName-longDigest-1)]
	return strings.TrimRight(head, "-.") + "-" + DigestOfParts(strconv.Itoa(epoch), workspace, cluster)[:longDigest]
}

// MemberClusterNamespace returns the member namespace of a MemberCluster.
func MemberClusterNamespace(name string) string { return memberClusterNamespacePrefix + name }

// MemberClusterNamespaceAt returns the member namespace of a MemberCluster after a number of
// revocations.
func MemberClusterNamespaceAt(epoch int, name string) string {
	if epoch == 0 {
		return MemberClusterNamespace(name)
	}
	return SafeConcat(memberClusterNamespacePrefix+name, KeyHash(strconv.Itoa(epoch)+"::"+name))
}

// MemberClusterRole returns the Role of the identity of a MemberCluster, in its member namespace.
func MemberClusterRole(name string) string { return "fleet-role-" + name }

// MemberClusterRoleBinding returns the RoleBinding of the identity of a MemberCluster to its Role.
func MemberClusterRoleBinding(name string) string { return "fleet-rolebinding-" + name }

// maxObjectName is the maximum length of the name of an object as a DNS subdomain.
const maxObjectName = 253

// ClusterProfile returns the name of the profile of a Cluster or MemberCluster; a MemberCluster has
// no workspace. Neither a MemberCluster's name nor a workspace has a dot, so no two share a name. A
// hash of the whole replaces the end of a long name.
func ClusterProfile(workspace, name string) string {
	if workspace == "" {
		return name
	}
	return fit(workspace + "." + name)
}

// AccessSecret returns the name of a tool's Secret for a Cluster or MemberCluster.
func AccessSecret(tool, workspace, name string) string {
	if workspace == "" {
		return fit(tool + "-" + name)
	}
	return fit(tool + "-" + workspace + "." + name)
}

// fit replaces the end of an overlong name with a hash of the whole.
func fit(full string) string {
	if len(full) <= maxObjectName {
		return full
	}
	return strings.TrimRight(full[:maxObjectName-11], "-.") + "-" + Digest(full)[:10]
}

// CredentialSecret returns the Secret in the system registration namespace for the request of an
// upstream agent.
func CredentialSecret(clientID, clientRandom string) string {
	return (credentialSecretPrefix + Digest([]byte(clientID+clientRandom)))[:maxName]
}

// RegistrationNamespace returns the system registration namespace of a system namespace.
func RegistrationNamespace(system string) string {
	if strings.Contains(system, "-system") {
		return strings.Replace(system, "-system", "-clusters-system", 1)
	}
	return system + "-clusters-system"
}

// ImportToken returns the ClusterRegistrationToken for the import of a Cluster.
func ImportToken(cluster string) string { return SafeConcat("import-token-" + cluster) }

// TokenServiceAccount returns the identity of a ClusterRegistrationToken.
func TokenServiceAccount(token, uid string) string { return SafeConcat(token, uid) }

// ServiceAccountToken returns the Secret of a never-expiring token of an account, kept by
// Kubernetes.
func ServiceAccountToken(account string) string { return account + "-token" }

// LastingToken returns the empty Secret bound to the tokens of an account without renewal.
func LastingToken(account string) string { return account + "-lasting" }

// MemberAgentChart is the name of the chart of a MemberCluster's agent, and of this agent's
// BundleDeployment.
const MemberAgentChart = "member-agent"

// AgentBundlePrefix is the prefix of the names of agents' Bundles.
const AgentBundlePrefix = "fleet-agent"

// AgentBundle returns the name of the Bundle of a Cluster's agent.
func AgentBundle(cluster string) string { return SafeConcat(AgentBundlePrefix, cluster) }
