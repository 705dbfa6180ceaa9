// Package protocol defines the messages between the agent and its child, the program
// muster-deployer. Orders arrive on standard input and replies on standard output, with a line of
// JSON each.
//
// Its invariant: only the order with the credential holds a secret.
package protocol

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"time"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/hubclient"
)

// Program is the name of the program, beside the agent's own.
const Program = "muster-deployer"

// maxOrder is the maximum length of a line; a CA bundle is the longest part of it.
const maxOrder = 4 << 20

// Order is a line of the program's standard input. The hub, token, kinds and term of the
// last order count; the rest never changes.
type Order struct {
	// Hub is the hub to connect to.
	Hub hubclient.Target `json:"hub"`
	// Token is the bearer token.
	Token string `json:"token"`
	// Namespace is the member namespace, Name the name of its report, Member the UID of the report.
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Member    string `json:"member"`
	// Kinds are the kinds visible to the member on the hub; the program leaves all others alone.
	Kinds []Kind `json:"kinds"`
	// Suspects are the BundleDeployments suspected of an earlier crash of the program.
	Suspects []Suspect `json:"suspects,omitempty"`
	// Leave is set if the member leaves, and decides whether everything delivered is removed. The
	// program stops deploying then.
	Leave clusterv1beta1.LeavePolicy `json:"leave,omitempty"`
	// HubTerm is the term of the hub that the member obeys; nil if it knows none.
	HubTerm *clusterv1beta1.HubTerm `json:"hubTerm,omitempty"`
	// Lost are the UIDs of the reports that the member had at its hub before a restore of the hub. The
	// hub may not know the deliveries from that time.
	Lost []string `json:"lost,omitempty"`
}

// Kind is a kind of object delivered by the hub to the member.
type Kind string

// The kinds.
const (
	Bundles Kind = "BundleDeployments"
	Works   Kind = "Works"
	// Agent is the BundleDeployment of the agent itself, the only one of a MemberCluster.
	Agent Kind = "AgentDeployments"
)

// Reply is a line of the program's standard output.
type Reply struct {
	// Failing is the reason why the objects of a Kind are not deployed.
	Kind    Kind   `json:"kind,omitempty"`
	Failing string `json:"failing,omitempty"`
	// Event is an event of the watch of a Kind; nil in other replies.
	Event *Event `json:"event,omitempty"`
	// Idle has the generations of finished objects. The program may then end.
	Idle map[string]int64 `json:"idle,omitempty"`
	// Alive is set if the program is not stuck; it is sent every AlivePeriod.
	Alive bool `json:"alive,omitempty"`
	// Begun is an action at its begin or with another deadline, Ended an ended one.
	Begun *Action `json:"begun,omitempty"`
	Ended *Ended  `json:"ended,omitempty"`
	// Left describes the remaining objects during the removal of everything, and their obstacles;
	// Emptied is set once none is left.
	Left    string `json:"left,omitempty"`
	Emptied bool   `json:"emptied,omitempty"`
	// Blocked explains why deliveries unknown to the hub still exist; nil in other replies.
	Blocked *Blocked `json:"blocked,omitempty"`
	// Tally has the states of the Works, and the results since the previous Tally.
	Tally *Tally `json:"tally,omitempty"`
}

// Blocked explains why a delivery unknown to the hub still exists; empty if there is none.
type Blocked struct {
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// AlivePeriod is the interval of the program's replies to show it is alive.
const AlivePeriod = 5 * time.Second

// ExitLeaseLost is the exit code of a deployer after it lost the Lease: another deployer may be at
// work.
const ExitLeaseLost = 75

// Action is work on one BundleDeployment.
type Action struct {
	// Name is the name of the BundleDeployment. UID and Generation are its values at the start of the
	// work, empty if it is gone.
	Name       string `json:"name"`
	UID        string `json:"uid,omitempty"`
	Generation int64  `json:"generation,omitempty"`
	// Rendered is set while the program only waits for others: its templates are rendered, or their
	// rendering has not begun.
	Rendered bool `json:"rendered,omitempty"`
	// Within is the time limit from now on.
	Within time.Duration `json:"within"`
}

// Ended is the end of an action on one BundleDeployment.
type Ended struct {
	Name string `json:"name"`
	// Survived is set if the program has rendered or compared the BundleDeployment without a crash.
	Survived bool `json:"survived,omitempty"`
}

// Suspect is a BundleDeployment suspected of a crash of the program. The program works on it alone.
type Suspect struct {
	Name       string `json:"name"`
	UID        string `json:"uid,omitempty"`
	Generation int64  `json:"generation,omitempty"`
	// Message describes the crash, and RetryAt is the end of its delay while it stays unchanged. Both
	// are empty if others may be the cause.
	Message string    `json:"message,omitempty"`
	RetryAt time.Time `json:"retryAt,omitzero"`
}

// Tally counts Works by state, and manifests by result since the previous tally.
type Tally struct {
	// Works is the number of Works by state: Pending, Failing, Applied, Available or Compared.
	Works map[string]int
	// Manifests is the number of manifests by result: applied, failed, compared or removed.
	Manifests map[string]int
}

// Send writes an order.
func (o Order) Send(to io.Writer) error {
	if err := json.NewEncoder(to).Encode(o); err != nil {
		return fmt.Errorf("telling %s: %w", Program, err)
	}
	return nil
}

// Send writes a reply.
func (a Reply) Send(to io.Writer) error { return json.NewEncoder(to).Encode(a) }

// ReadReplies reads replies until the program closes its standard output.
func ReadReplies(from io.Reader, handle func(Reply)) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxOrder)
	for lines.Scan() {
		var reply Reply
		if json.Unmarshal(lines.Bytes(), &reply) == nil { // a chart may make the program print anything
			handle(reply)
		}
	}
	_, _ = io.Copy(io.Discard, from) // an overlong line must not block the program
}

// ReadOrders reads orders until the agent closes the program's standard input.
func ReadOrders(from io.Reader, handle func(Order)) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxOrder)
	for lines.Scan() {
		var order Order
		if err := json.Unmarshal(lines.Bytes(), &order); err != nil {
			// The error of the parser may quote the token.
			return fmt.Errorf("a line of standard input is no order of an agent")
		}
		handle(order)
	}
	return lines.Err()
}
