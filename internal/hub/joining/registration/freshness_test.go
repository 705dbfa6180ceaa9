package registration

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/credential"
)

func TestOnlyWhatAKeySignsForTheFirstTimeIsFresh(t *testing.T) {
	request := func(uid types.UID, nonce string) *fleet.ClusterRegistration {
		return &fleet.ClusterRegistration{
			ObjectMeta: metav1.ObjectMeta{UID: uid}, Spec: fleet.ClusterRegistrationSpec{AgentKey: []byte("key"), ClientRandom: nonce},
		}
	}
	at := func(later time.Duration) string { return credential.TimedNonce("r4nd0m", start.Add(later)) }
	granted := request("granted", at(0))
	remembered := useOf(granted)
	other := request("other", at(-time.Hour))
	other.Spec.AgentKey = []byte("another key")
	for _, c := range []struct {
		name       string
		r          *fleet.ClusterRegistration
		remembered string
		want       freshness
	}{
		{"the first request of a key", granted, "", fresh},
		{"the request that was granted, when the hub looks again", granted, remembered, fresh},
		{"a copy", request("copy", at(0)), remembered, replay},
		{"an older one", request("older", at(-time.Microsecond)), remembered, replay},
		{"a newer one", request("newer", at(time.Microsecond)), remembered, fresh},
		{"one of another key", other, remembered, fresh},
		{"one of an older agent, whose key never signed a time", request("untimed", "r4nd0m"), "", fresh},
		{"one without a time, of a key that has signed one", request("untimed", "r4nd0m"), remembered, untimed},
		{"beside an annotation that says nothing", request("copy", at(0)), "whatever", fresh},
	} {
		if got := freshnessOf(c.r, c.remembered); got != c.want {
			t.Errorf("%s is %q, want %q", c.name, got, c.want)
		}
	}
	if got := useOf(request("untimed", "r4nd0m")); got != "" {
		t.Errorf("of a request without a time the Cluster remembers %q", got)
	}
	if got := useOf(&fleet.ClusterRegistration{Spec: fleet.ClusterRegistrationSpec{ClientRandom: at(0)}}); got != "" {
		t.Errorf("of a request without a key the Cluster remembers %q", got)
	}
}
