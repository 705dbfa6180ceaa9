package lifecycle

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
)

// tlsStrict satisfies every mode, tlsInsecure none.
const (
	tlsStrict   = "strict"
	tlsInsecure = "insecure"
)

// Address holds the inputs of the condition HubConfigured.
type Address struct {
	// Desired is the address of the hub for the agent, from the settings; nil if they name none.
	Desired *clusterv1beta1.HubAddress
	// Report of the member; nil if there is none.
	Report *clusterv1beta1.InternalMemberCluster
	// Standby has a sentence about each further address without a token; "" if there is none.
	Standby string
}

// Asked reports whether the report names the desired address.
func (a Address) Asked() bool {
	return a.Report != nil && equality.Semantic.DeepEqual(a.Report.Spec.Hub, a.Desired)
}

// InUse returns the address in use by the agent, nil if it reports none.
func (a Address) InUse() *clusterv1beta1.HubInUse {
	if a.Report == nil {
		return nil
	}
	return a.Report.Status.Hub
}

// Condition returns HubConfigured. It reports whether the agent uses the desired address. The
// condition has no reason if the settings name no address. It has none for a legacy agent, or
// before the agent's first report.
func (a Address) Condition() metav1.Condition {
	no := func(reason, message string) metav1.Condition {
		return metav1.Condition{Type: clusterv1beta1.ConditionHubConfigured, Status: metav1.ConditionFalse, Reason: reason, Message: message}
	}
	if a.Desired == nil || a.Report == nil || a.Report.Status.AgentVersion == "" {
		return no("", "")
	}
	used := a.InUse()
	if used == nil {
		return no(reasons.AgentTooOld, fmt.Sprintf(
			"the agent, version %s, does not report its address of the hub and cannot move: upgrade it", a.Report.Status.AgentVersion))
	}
	url, ca := cmp.Or(a.Desired.APIServerURL, used.APIServerURL), used.APIServerCAHash
	if a.Desired.APIServerCA != "" {
		ca = credential.CAHash([]byte(a.Desired.APIServerCA))
	}
	current, wanted := describeAddress(used.APIServerURL, used.APIServerCAHash), describeAddress(url, ca)
	switch arrived := url == used.APIServerURL && ca == used.APIServerCAHash; {
	case arrived && used.AgentTLSMode == tlsInsecure:
		return no(reasons.NotVerified, fmt.Sprintf(
			"the agent uses %s, and does not verify its certificate: set tlsClientInsecure=false in the values of its chart", current))
	case arrived && a.modeSatisfied(used.AgentTLSMode):
		used := no(reasons.InUse, "the agent uses "+current+a.Standby)
		used.Status = metav1.ConditionTrue
		return used
	case a.fallback() > 0:
		return no(reasons.FallbackInUse, a.describeFallback(current)+a.Standby)
	case used.Failure != "" && used.ObservedGeneration == a.Report.Generation && a.Asked():
		return no(reasons.AddressUnreachable, used.Failure)
	case !a.Asked():
		return no(reasons.Moving, fmt.Sprintf("the agent uses %s, and waits for its turn to move to %s", current, wanted))
	}
	return no(reasons.Moving, fmt.Sprintf("the agent uses %s; the hub has requested its move to %s, agentTLSMode %s",
		current, wanted, a.Desired.AgentTLSMode))
}

// fallback returns the position of the address in use among the fallbacks of the settings, from 1;
// 0 if it is none of them.
func (a Address) fallback() int {
	return 1 + slices.IndexFunc(a.Desired.Fallbacks, func(f clusterv1beta1.HubFallback) bool {
		return f.APIServerURL == a.InUse().APIServerURL
	})
}

func (a Address) describeFallback(current string) string {
	message := fmt.Sprintf("the agent uses %s, fallback %d of %d; it returns once %s answers",
		current, a.fallback(), len(a.Desired.Fallbacks), a.Desired.APIServerURL)
	if used := a.InUse(); used.Failure != "" {
		message += ": " + used.Failure
	}
	return message
}

func (a Address) modeSatisfied(used string) bool {
	return a.Desired.AgentTLSMode == "" || used == a.Desired.AgentTLSMode || used == tlsStrict
}

// eventOfMove returns the type of the Event about a new reason of the condition, or "". The steps
// of a move have no Event.
func eventOfMove(reason string) string {
	switch reason {
	case reasons.InUse:
		return corev1.EventTypeNormal
	case reasons.AddressUnreachable, reasons.FallbackInUse, reasons.AgentTooOld, reasons.NotVerified:
		return corev1.EventTypeWarning
	}
	return ""
}

// describeAddress formats an address to make two of them distinguishable.
func describeAddress(url, caHash string) string {
	return fmt.Sprintf("%s (apiServerCAHash %.12s)", url, caHash)
}

// KeepAddress keeps the address in the report until the hub has read its settings.
func (c *Controller) KeepAddress(o *Observed) {
	if o.Report != nil && c.Config.Current().Unknown {
		o.Hub = o.Report.Spec.Hub
	}
}

// AddressToAsk returns the hub address to write into the report. While the member waits for its
// turn to move, it returns the address already in the report.
func (c *Controller) AddressToAsk(o *Observed) *clusterv1beta1.HubAddress {
	if o.Report == nil || o.Address().Asked() {
		c.moves.Forget(o.key())
		return o.Hub
	}
	if o.WaitToMove = c.moves.Wait(o.key(), c.Clock.Now()); o.WaitToMove > 0 {
		return o.Report.Spec.Hub
	}
	return o.Hub
}

// AnnounceMove logs a new reason of the condition HubConfigured and emits an Event about it.
func (c *Controller) AnnounceMove(ctx context.Context, record client.Object, o Observed, from string) {
	to := o.Address().Condition()
	if from == "" || to.Reason == "" || from == to.Reason {
		return
	}
	ctrl.LoggerFrom(ctx).Info("Member moves to another address of the hub", "from", from, "to", to.Reason, "message", to.Message)
	if kind := eventOfMove(to.Reason); kind != "" {
		c.Recorder.Eventf(record, nil, kind, to.Reason, "Move", "%s", to.Message)
	}
}
