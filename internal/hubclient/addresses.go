package hubclient

import (
	"encoding/json"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-fleet/muster/internal/credential"
)

// defaultFallbackAfter is the time without an answer before an agent uses the next address.
const defaultFallbackAfter = time.Minute

// Address is an address of the hub, with the CA to trust there.
type Address struct {
	// Server is the URL of the hub's API server.
	Server string `json:"server"`
	// CA is PEM; empty if the system knows the CA.
	CA []byte `json:"ca,omitempty"`
	// Token is a token of the API server there, for a restored hub with other accounts; "" if the hub
	// has named none.
	Token string `json:"token,omitempty"`
}

// String keeps the token out of every message.
func (a Address) String() string { return a.Server }

// GoString keeps the token out of every message.
func (a Address) GoString() string { return a.Server }

// Addresses are the addresses of a hub, as the hub itself has named them.
type Addresses struct {
	// List starts with the first address; the others are its fallbacks. It is empty if the hub has
	// named no fallbacks.
	List []Address `json:"list"`
	// AfterSeconds is the time without an answer before an agent uses the next address.
	AfterSeconds int32 `json:"afterSeconds,omitempty"`
	// Report is the UID of the agent's report on this hub.
	Report types.UID `json:"report,omitempty"`
}

// After returns the time without an answer before an agent uses the next address.
func (a Addresses) After() time.Duration {
	if a.AfterSeconds <= 0 {
		return defaultFallbackAfter
	}
	return time.Duration(a.AfterSeconds) * time.Second
}

// Fallback returns the position of a server among the fallbacks, from 1; 0 if it is none of them.
func (a Addresses) Fallback(server string) int {
	return max(0, slices.IndexFunc(a.List, func(known Address) bool { return known.Server == server }))
}

// Encode returns the stored form; nil without addresses.
func (a Addresses) Encode() []byte {
	if len(a.List) == 0 {
		return nil
	}
	content, err := json.Marshal(a)
	if err != nil {
		panic(err) // plain data: a mistake in this program
	}
	return content
}

// ParseAddresses reads the result of Encode. Unreadable addresses count as none: the hub names them
// again.
func ParseAddresses(encoded []byte) Addresses {
	var a Addresses
	if len(encoded) == 0 || json.Unmarshal(encoded, &a) != nil {
		return Addresses{}
	}
	for _, known := range a.List {
		server, err := credential.ParseServer(known.Server)
		if _, unusable := credential.ParseCA(string(known.CA)); err != nil || unusable != nil || server != known.Server {
			return Addresses{}
		}
	}
	return a
}
