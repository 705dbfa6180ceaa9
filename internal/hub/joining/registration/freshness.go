package registration

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
)

// A signed request counts once. Its nonce contains the time of the request, and the Cluster stores
// the newest granted request of its key. Agents of earlier versions send no time: their signed
// requests count until their key has signed a time.

// freshness reports whether a signed request may be a copy of an already granted one.
type freshness string

const (
	// fresh: the request is newer than every earlier one signed with its key, or is not signed.
	fresh freshness = ""
	// replay: the key has signed this time, or a later one, in another request.
	replay freshness = "Replay"
	// untimed: the request has no time, and the key has signed one before.
	untimed freshness = "Untimed"
)

// use is a Cluster's note of the newest request of its key.
type use struct {
	at       time.Time
	uid, key string
}

func (u use) String() string { return fmt.Sprintf("%d %s %s", u.at.UnixMicro(), u.uid, u.key) }

func parseUse(text string) (u use, ok bool) {
	fields := strings.Fields(text)
	if len(fields) != 3 {
		return use{}, false
	}
	micros, err := strconv.ParseInt(fields[0], 10, 64)
	return use{time.UnixMicro(micros), fields[1], fields[2]}, err == nil
}

// freshnessOf compares a request with the note on the Cluster.
func freshnessOf(r *fleet.ClusterRegistration, remembered string) freshness {
	used, noted := parseUse(remembered)
	if !noted || used.key != claimedKey(r) || used.uid == string(r.UID) {
		return fresh
	}
	switch at, timed := credential.NonceTime(r.Spec.ClientRandom); {
	case !timed:
		return untimed
	case !at.After(used.at):
		return replay
	}
	return fresh
}

// useOf returns the note about a granted request for the Cluster; "" without a time.
func useOf(r *fleet.ClusterRegistration) string {
	at, timed := credential.NonceTime(r.Spec.ClientRandom)
	if key := claimedKey(r); timed && key != "" {
		return use{at, string(r.UID), key}.String()
	}
	return ""
}

// replayed denies a request with an already used signature.
func replayed(workspace, cluster string) decision {
	return denied(reasons.Replayed,
		fmt.Sprintf("the key of Cluster %s/%s has signed this request, or a later one, before: a signed request counts once. If the agent sent "+
			"it, and the clock of its cluster was fast before: kubectl -n %s annotate cluster.fleet.cattle.io %s %s- and restart the agent",
			workspace, cluster, workspace, cluster, fleet.AnnotationAgentKeyUsed))
}
