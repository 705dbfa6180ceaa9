// Package protocol is what the agent and its child, the program muster-deployer, say to each other: orders on standard input,
// replies on standard output, a line of JSON each.
//
// Its invariant: no line holds a secret but the order that carries the credential.
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

// maxOrder is how long a line may be; a CA bundle is the longest part of it.
const maxOrder = 4 << 20

// Order is a line of the program's standard input. The hub, the token and the kinds of the last one count; the rest never changes.
type Order struct {
	// Hub is whom to dial.
	Hub hubclient.Target `json:"hub"`
	// Token is the bearer token.
	Token string `json:"token"`
	// Namespace is the member namespace, Name that of the report in it, Member the report's UID.
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Member    string `json:"member"`
	// Kinds are what the hub lets the member see; what it does not is left alone.
	Kinds []Kind `json:"kinds"`
	// Suspects are the BundleDeployments on which the program may have ended before.
	Suspects []Suspect `json:"suspects,omitempty"`
	// Leave says that the member leaves, and whether all that was placed on it is to be removed. The program stops deploying for the member.
	Leave clusterv1beta1.LeavePolicy `json:"leave,omitempty"`
}

// Kind is a kind of object by which the hub places something on the member.
type Kind string

// The kinds.
const (
	Bundles Kind = "BundleDeployments"
	Works   Kind = "Works"
)

// Reply is a line of the program's standard output.
type Reply struct {
	// Failing says why the objects of a Kind are not deployed.
	Kind    Kind   `json:"kind,omitempty"`
	Failing string `json:"failing,omitempty"`
	// Event is what the watch of the objects of a Kind shows; nil in a reply about something else.
	Event *Event `json:"event,omitempty"`
	// Idle are the generations of objects that need nothing more, so that the program may end.
	Idle map[string]int64 `json:"idle,omitempty"`
	// Alive says that the program is not stuck; it is sent every AlivePeriod.
	Alive bool `json:"alive,omitempty"`
	// Begun is an action that begins or has another deadline, Ended one that ended.
	Begun *Action `json:"begun,omitempty"`
	Ended *Ended  `json:"ended,omitempty"`
	// Left says how many objects are left while all is removed, and what they wait for; Emptied that none is left.
	Left    string `json:"left,omitempty"`
	Emptied bool   `json:"emptied,omitempty"`
	// Blocked is what keeps releases without BundleDeployment from being removed; nil in a reply about something else.
	Blocked *Blocked `json:"blocked,omitempty"`
	// Tally are the states of the Works, and what was done since the Tally before.
	Tally *Tally `json:"tally,omitempty"`
}

// Blocked says why a release without BundleDeployment is still there; empty if none is.
type Blocked struct {
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// The reasons of what is blocked.
const (
	// ReasonRemovalBlocked: objects of a release cannot be deleted or looked up.
	ReasonRemovalBlocked = "RemovalBlocked"
	// ReasonRemovalUnconfirmed: the hub has not confirmed that the BundleDeployment was deleted.
	ReasonRemovalUnconfirmed = "RemovalUnconfirmed"
	// ReasonHubRestored: the hub was restored from an earlier state, which does not know the release.
	ReasonHubRestored = "HubRestored"
)

// AlivePeriod is how often the program sends a reply that it is alive.
const AlivePeriod = 5 * time.Second

// ExitLeaseLost is the exit code of a program that lost the Lease by which one deployer at a time deploys.
const ExitLeaseLost = 75

// Action is work on one BundleDeployment.
type Action struct {
	// Name is that of the BundleDeployment, UID and Generation what it was when the work began; both are empty if it is gone.
	Name       string `json:"name"`
	UID        string `json:"uid,omitempty"`
	Generation int64  `json:"generation,omitempty"`
	// Rendered says that the templates are, or not yet, so that the program only waits for others.
	Rendered bool `json:"rendered,omitempty"`
	// Within is how long it may take from now on.
	Within time.Duration `json:"within"`
}

// Ended is the end of an action on one BundleDeployment.
type Ended struct {
	Name string `json:"name"`
	// Survived says that the program has rendered or compared the BundleDeployment without ending.
	Survived bool `json:"survived,omitempty"`
}

// Suspect is a BundleDeployment on which the program may have ended, and which is worked on alone.
type Suspect struct {
	Name       string `json:"name"`
	UID        string `json:"uid,omitempty"`
	Generation int64  `json:"generation,omitempty"`
	// Message says what happened, and RetryAt until when it is left alone as long as it does not change; empty if others may have been the cause.
	Message string    `json:"message,omitempty"`
	RetryAt time.Time `json:"retryAt,omitzero"`
}

// Tally counts Works by state, and manifests by what was done since the tally before.
type Tally struct {
	// Works is how many there are, by state: Pending, Failing, Applied, Available or Compared.
	Works map[string]int
	// Manifests is how many manifests were applied, failed, compared or removed.
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
	_, _ = io.Copy(io.Discard, from) // a line that is too long must not hold the program up
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
