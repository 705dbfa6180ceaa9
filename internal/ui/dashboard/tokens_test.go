package dashboard

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

func TestATokenHasNoEndOnlyIfThatIsSaid(t *testing.T) {
	for said, want := range map[[2]string]*fleet.ClusterRegistrationTokenSpec{
		{"24h", "1"}:  {TTL: &metav1.Duration{Duration: 24 * time.Hour}, MaxRegistrations: new(int32(1))},
		{"0", "1"}:    {MaxRegistrations: new(int32(1))},
		{"24h", "0"}:  {TTL: &metav1.Duration{Duration: 24 * time.Hour}},
		{"0", "0"}:    {},
		{"", "1"}:     nil,
		{"24h", ""}:   nil,
		{"-1h", "1"}:  nil,
		{"24h", "-1"}: nil,
	} {
		fields := map[string]string{"namespace": "clusters", "name": "web", "ttl": said[0], "max": said[1]}
		made, err := tokenOf(func(name string) string { return fields[name] })
		switch {
		case want == nil && err == nil:
			t.Errorf("for %q, by %q: it is %+v", said[0], said[1], made.Spec)
		case want != nil && err != nil:
			t.Errorf("for %q, by %q: %v", said[0], said[1], err)
		case want != nil:
			if diff := cmp.Diff(*want, made.Spec); diff != "" {
				t.Errorf("for %q, by %q (-want +got):\n%s", said[0], said[1], diff)
			}
		}
	}
}
