package membership

import "sigs.k8s.io/controller-runtime/pkg/client"

// AgentKind is the kind of the agent with an identity.
type AgentKind string

// The kinds of agents.
const (
	// Native agents are Muster's own: they send heartbeats through a Lease and write a report.
	Native AgentKind = "native"
	// Legacy agents are unmodified Rancher Fleet agents.
	Legacy AgentKind = "legacy"
)

const (
	// AnnotationAgent on a member's ServiceAccount is the kind of agent with the first grant of the
	// account.
	AnnotationAgent = "muster/agent"
	// AnnotationActing is on the ServiceAccount of a Rancher Fleet agent after an agent of Muster's
	// has taken over its credential. Its value is the kind of the acting agent.
	AnnotationActing = "muster/acting-agent"
)

// KindOf returns the kind of agent acting with a member's ServiceAccount.
func KindOf(account client.Object) AgentKind {
	if Shared(account) {
		return AgentKind(account.GetAnnotations()[AnnotationActing])
	}
	return IssuedTo(account)
}

// IssuedTo returns the kind of agent with the first grant of a member's ServiceAccount; "" if the
// account is no member's.
func IssuedTo(account client.Object) AgentKind {
	return AgentKind(account.GetAnnotations()[AnnotationAgent])
}

// Shared reports whether an agent of Muster's has taken over the credential of a Rancher Fleet
// agent. The credential never expires, so either agent may act with it from then on.
func Shared(account client.Object) bool {
	return IssuedTo(account) == Legacy && account.GetAnnotations()[AnnotationActing] != ""
}
