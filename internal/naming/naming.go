// Package naming derives every name that the hub, its agents and upstream agents have to agree on.
//
// Its invariant: the functions are pure and their results never change between versions; the golden vectors in the test
// were computed with the upstream system.
package naming

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strconv"
	"strings"
)

// Names that are the same everywhere.
const (
	// SystemNamespace is the default namespace of hub and agent.
	SystemNamespace = "cattle-fleet-system"
	// MemberSystemNamespace is where admins keep the identities of MemberClusters on the hub, and the default namespace of their
	// agents on the members.
	MemberSystemNamespace = "fleet-system"
	// AgentBootstrapSecret holds the registration token downstream until the agent has joined.
	AgentBootstrapSecret = "fleet-agent-bootstrap"
	// AgentKeySecret holds the key by which the hub knows the agent again, downstream.
	AgentKeySecret = "fleet-agent-key"
	// AgentSecret holds the agent's own credential downstream.
	AgentSecret = "fleet-agent"
	// AgentConfigMap holds the agent's settings downstream.
	AgentConfigMap = "fleet-agent"
	// AgentLease is the Lease in the agent's namespace by which one deployer at a time deploys; an agent of Rancher Fleet takes it, too.
	AgentLease = "fleet-agent"
	// MemberAgentLease is that of the agent of a MemberCluster.
	MemberAgentLease = "member-agent"
	// LearnedHubConfigMap has the address at which the hub asked the agent of a MemberCluster to reach it, in the agent's namespace.
	LearnedHubConfigMap = "member-agent-hub"
	// MemberAgentCredentialSecret holds the credential that the hub issued to the agent of a MemberCluster, in the agent's namespace.
	MemberAgentCredentialSecret = "member-agent-credential"
	// HubConfigMap holds the hub's settings in its system namespace.
	HubConfigMap = "fleet-controller"
	// HubLease is the Lease of the leading hub, in its system namespace.
	HubLease = "muster-hub"
	// HubServiceAccount is who the hub acts as, in its system namespace.
	HubServiceAccount = "fleet-controller"
	// MemberServiceAccount is the identity of a member, in its member namespace.
	MemberServiceAccount = "agent"
	// MemberReconnectAccount is the account with which the agent of a MemberCluster comes back once
	// its credential has run out, and its Role and RoleBinding, in its member namespace.
	MemberReconnectAccount = "agent-reconnect"
	// HeartbeatLease is the Lease that an agent renews, in its member namespace.
	HeartbeatLease = "heartbeat"
	// LabelMember, on the history of a release downstream, is the UID of the report of the member that it was delivered to.
	LabelMember            = "muster/member"
	credentialSecretPrefix = "c-"
)

const (
	memberClusterNamespacePrefix = "fleet-member-"
	// MaxMemberClusterName is how long a MemberCluster's name may be for its member namespace to be a DNS label.
	MaxMemberClusterName = maxName - len(memberClusterNamespacePrefix)
	// maxName is how many characters a label value or the name of a namespace may have.
	maxName = 63
	// keyHashInput is how many characters of a string KeyHash reads.
	keyHashInput = 100
)

var endsInAlphanumeric = regexp.MustCompile(`[a-z0-9]$`)

// SafeConcat joins parts with dashes and, if the result is longer than 63 characters, replaces its end by a hash of the whole.
func SafeConcat(parts ...string) string {
	full := strings.Join(parts, "-")
	if len(full) <= maxName {
		return full
	}
	digest := Digest([]byte(full))
	if head := full[:57]; endsInAlphanumeric.MatchString(head) {
		return head + "-" + digest[:5]
	}
	return strings.TrimRight(full[:56], "-") + "-" + digest[:6]
}

// Digest is the SHA-256 digest of data in hexadecimal digits.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// DigestOfParts is the digest of the digests of all parts, so that no two lists of parts run into one another.
func DigestOfParts[T ~string | ~[]byte](parts ...T) string {
	var all []byte
	for _, part := range parts {
		sum := sha256.Sum256([]byte(part))
		all = append(all, sum[:]...)
	}
	return Digest(all)
}

// KeyHash is a 12 character digest of the first 100 characters of s.
func KeyHash(s string) string {
	if len(s) > keyHashInput {
		s = s[:keyHashInput]
	}
	return Digest([]byte(s))[:12]
}

// Cluster is the name of the Cluster that is created for a client ID which no Cluster has.
func Cluster(clientID string) string { return "cluster-" + KeyHash(clientID) }

// MemberNamespace is the member namespace of a Cluster.
func MemberNamespace(workspace, cluster string) string {
	return SafeConcat("cluster", workspace, cluster, KeyHash(workspace+"::"+cluster))
}

// MemberNamespaceAt is the member namespace of a Cluster that was revoked so many times. KeyHash does not read the end of what is long, so that the
// epoch stands first.
func MemberNamespaceAt(epoch int, workspace, cluster string) string {
	if epoch == 0 {
		return MemberNamespace(workspace, cluster)
	}
	return SafeConcat("cluster", workspace, cluster, KeyHash(strconv.Itoa(epoch)+"::"+workspace+"::"+cluster))
}

// longDigest is how many hexadecimal digits of a digest stand in the long form of a name: 64 bits.
const longDigest = 16

// LongMemberNamespaceAt is the other form of MemberNamespaceAt. Agents of Muster know both. The end of a name that would be too
// long is dropped before the digest, never a part of the digest. The namespace of epoch 0 has no long form.
func LongMemberNamespaceAt(epoch int, workspace, cluster string) string {
	if epoch == 0 {
		return MemberNamespace(workspace, cluster)
	}
	head := "cluster-" + workspace + "-" + cluster
	head = head[:min(len(head), maxName-longDigest-1)]
	return strings.TrimRight(head, "-.") + "-" + DigestOfParts(strconv.Itoa(epoch), workspace, cluster)[:longDigest]
}

// MemberClusterNamespace is the member namespace of a MemberCluster.
func MemberClusterNamespace(name string) string { return memberClusterNamespacePrefix + name }

// MemberClusterNamespaceAt is the member namespace of a MemberCluster that was revoked so many times.
func MemberClusterNamespaceAt(epoch int, name string) string {
	if epoch == 0 {
		return MemberClusterNamespace(name)
	}
	return SafeConcat(memberClusterNamespacePrefix+name, KeyHash(strconv.Itoa(epoch)+"::"+name))
}

// MemberClusterRole is the Role of the identity of a MemberCluster, in its member namespace.
func MemberClusterRole(name string) string { return "fleet-role-" + name }

// MemberClusterRoleBinding is the RoleBinding that gives the identity of a MemberCluster its Role.
func MemberClusterRoleBinding(name string) string { return "fleet-rolebinding-" + name }

// maxObjectName is how long the name of an object may be that is a DNS subdomain.
const maxObjectName = 253

// ClusterProfile is the name of the profile of a record; a MemberCluster has no workspace. Neither a MemberCluster's name nor a workspace has a
// dot, so no two records have one name. The end of a name that would be too long is replaced by a hash of the whole.
func ClusterProfile(workspace, name string) string {
	if workspace == "" {
		return name
	}
	full := workspace + "." + name
	if len(full) <= maxObjectName {
		return full
	}
	return strings.TrimRight(full[:maxObjectName-11], "-.") + "-" + Digest([]byte(full))[:10]
}

// CredentialSecret is the Secret in the system registration namespace that answers a request of an upstream agent.
func CredentialSecret(clientID, clientRandom string) string {
	return (credentialSecretPrefix + Digest([]byte(clientID+clientRandom)))[:maxName]
}

// RegistrationNamespace is the system registration namespace that goes with a system namespace.
func RegistrationNamespace(system string) string {
	if strings.Contains(system, "-system") {
		return strings.Replace(system, "-system", "-clusters-system", 1)
	}
	return system + "-clusters-system"
}

// ImportToken is the ClusterRegistrationToken with which the hub imports a Cluster.
func ImportToken(cluster string) string { return SafeConcat("import-token-" + cluster) }

// TokenServiceAccount is the identity behind a ClusterRegistrationToken.
func TokenServiceAccount(token, uid string) string { return SafeConcat(token, uid) }

// ServiceAccountToken is the Secret in which Kubernetes keeps a never-expiring token of an account.
func ServiceAccountToken(account string) string { return account + "-token" }

// LastingToken is the empty Secret that tokens of an account which nobody renews are bound to.
func LastingToken(account string) string { return account + "-lasting" }

// AgentBundlePrefix begins the names of the Bundles of agents.
const AgentBundlePrefix = "fleet-agent"

// AgentBundle returns the name of the Bundle of a Cluster's agent.
func AgentBundle(cluster string) string { return SafeConcat(AgentBundlePrefix, cluster) }
