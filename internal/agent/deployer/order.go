// Package deployer runs the program muster-deployer as long as there is something to deploy, and tells it for whom.
//
// Its invariant: the agent does not link what deploys, so that its memory is its own; the credential reaches the program over its standard
// input and nowhere else; whatever becomes of the program, the heartbeat goes on; and when the agent ends, by whatever cause, so does the program.
package deployer

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"time"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/agent/remote"
)

// Program is the name of the program, beside the agent's own.
const Program = "muster-deployer"

// maxOrder is how long a line may be; a CA bundle is the longest part of it.
const maxOrder = 4 << 20

// Order is a line of the program's standard input. The hub, the token and the kinds of the last one count; the rest never changes.
type Order struct {
	// Hub is whom to dial.
	Hub remote.Target `json:"hub"`
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
	// Leave says that the member leaves, and whether all that was placed on it is to be removed. It ends what the program does for it.
	Leave clusterv1beta1.LeavePolicy `json:"leave,omitempty"`
}

// Kind is a kind of object by which the hub places something on the member.
type Kind string

// The kinds.
const (
	Bundles Kind = "BundleDeployments"
	Works   Kind = "Works"
)

// Answer is a line of the program's standard output.
type Answer struct {
	// Kind is of what Failing says why nothing comes of it.
	Kind    Kind   `json:"kind,omitempty"`
	Failing string `json:"failing,omitempty"`
	// Rested are the generations of what is placed and needs nothing more, so that the program may end.
	Rested map[string]int64 `json:"rested,omitempty"`
	// Alive says nothing but that the program is not stuck; it is said every AlivePeriod.
	Alive bool `json:"alive,omitempty"`
	// Begun is what the program begins to work on, or comes further with, and Ended what it is done with.
	Begun *Action `json:"begun,omitempty"`
	Ended *Ended  `json:"ended,omitempty"`
	// Left says how much is left while the member is emptied, and what that waits for; Emptied that it is over.
	Left    string `json:"left,omitempty"`
	Emptied bool   `json:"emptied,omitempty"`
	// Blocked is what keeps releases from being removed whose BundleDeployments are gone; nil if this answer says nothing of it.
	Blocked *Blocked `json:"blocked,omitempty"`
	// Tally is how the Works stand, and what was done about them since the last.
	Tally *Tally `json:"tally,omitempty"`
}

// Blocked says why something that is no longer wanted is still there. It is empty if nothing is.
type Blocked struct {
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// The reasons of what is blocked.
const (
	// ReasonRemovalBlocked: objects of a release cannot be deleted or looked up.
	ReasonRemovalBlocked = "RemovalBlocked"
	// ReasonRemovalUnconfirmed: the hub has not confirmed that the release was taken away.
	ReasonRemovalUnconfirmed = "RemovalUnconfirmed"
	// ReasonHubRestored: the hub was restored from an earlier state, which does not know the release.
	ReasonHubRestored = "HubRestored"
)

// AlivePeriod is how often the program says that it is alive.
const AlivePeriod = 5 * time.Second

// ExitLeaseLost is the exit code of a program that lost the Lease by which one deployer at a time deploys.
const ExitLeaseLost = 75

// Action is work on one BundleDeployment.
type Action struct {
	// Name is that of the BundleDeployment, UID and Generation what it was when the work began; both are empty if it is gone.
	Name       string `json:"name"`
	UID        string `json:"uid,omitempty"`
	Generation int64  `json:"generation,omitempty"`
	// Rendered says that the templates are, so that what remains is to wait for the API server.
	Rendered bool `json:"rendered,omitempty"`
	// Within is how long it may take from now on.
	Within time.Duration `json:"within"`
}

// Ended is the end of an action.
type Ended struct {
	Name string `json:"name"`
	// Survived says that the program did with it what it could have ended on.
	Survived bool `json:"survived,omitempty"`
}

// Suspect is a BundleDeployment on which the program may have ended. It is worked on alone.
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
	Works     map[string]int
	Manifests map[string]int
}

// Send writes an order.
func (o Order) Send(to io.Writer) error {
	if err := json.NewEncoder(to).Encode(o); err != nil {
		return fmt.Errorf("telling %s: %w", Program, err)
	}
	return nil
}

// Send writes an answer.
func (a Answer) Send(to io.Writer) error { return json.NewEncoder(to).Encode(a) }

// Hear reads answers and hands them on, until the program closes its end.
func Hear(from io.Reader, take func(Answer)) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxOrder)
	for lines.Scan() {
		var answer Answer
		if json.Unmarshal(lines.Bytes(), &answer) == nil { // whatever else a chart makes it print is nobody's concern
			take(answer)
		}
	}
	_, _ = io.Copy(io.Discard, from) // a line that is too long must not hold the program up
}

// Receive reads orders and hands them on, until the agent closes its end.
func Receive(from io.Reader, take func(Order)) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxOrder)
	for lines.Scan() {
		var order Order
		if err := json.Unmarshal(lines.Bytes(), &order); err != nil {
			// The error of the parser may quote the token.
			return fmt.Errorf("a line of standard input is no order of an agent")
		}
		take(order)
	}
	return lines.Err()
}
