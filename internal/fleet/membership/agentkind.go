package membership

import "sigs.k8s.io/controller-runtime/pkg/client"

// AgentKind is the kind of agent that an identity was issued to.
type AgentKind string

// The kinds of agents.
const (
	// Native agents are Muster's own: they beat through a Lease and report.
	Native AgentKind = "native"
	// Legacy agents are unmodified Rancher Fleet agents.
	Legacy AgentKind = "legacy"
)

const (
	// AnnotationAgent on a member's ServiceAccount is the kind of agent to which the account was issued.
	AnnotationAgent = "muster/agent"
	// AnnotationActing on the ServiceAccount of a Rancher Fleet agent is the kind of agent that acts with the account since an agent of Muster has
	// taken over its credential.
	AnnotationActing = "muster/acting-agent"
)

// KindOf returns which kind of agent acts with a member's ServiceAccount.
func KindOf(account client.Object) AgentKind {
	if Shared(account) {
		return AgentKind(account.GetAnnotations()[AnnotationActing])
	}
	return IssuedTo(account)
}

// IssuedTo returns to which kind of agent a member's ServiceAccount was issued; "" if it is no member's.
func IssuedTo(account client.Object) AgentKind {
	return AgentKind(account.GetAnnotations()[AnnotationAgent])
}

// Shared returns whether an agent of Muster has taken over the credential of a Rancher Fleet agent. The credential never expires, so that either
// agent may act with it from then on.
func Shared(account client.Object) bool {
	return IssuedTo(account) == Legacy && account.GetAnnotations()[AnnotationActing] != ""
}
