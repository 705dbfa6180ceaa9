package join

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// TestTheAgentSaysWhatTheRequestSays takes each request that tests have recorded of real hubs:
// readiness and log of an agent have the sentence of the request, and the reason by which the
// sentence is explained.
func TestTheAgentSaysWhatTheRequestSays(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "ui", "explain", "testdata", "ClusterRegistration.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var requests map[string]*fleet.ClusterRegistration
	if err := yaml.Unmarshal(text, &requests); err != nil {
		t.Fatal(err)
	}
	quoted := 0
	for _, r := range requests {
		if r.Status.State == "" || r.Status.State == fleet.RegistrationGranted {
			continue
		}
		says := ""
		w := waiter{Joiner: joiner(t, nil), request: r}
		w.Progress = func(sentence string) { says = sentence }
		if _, _, err := w.answer(r.Status); err != nil {
			var refusal *Refusal
			if !errors.As(err, &refusal) || !refusal.Final {
				t.Errorf("%s: ended with %v", r.Status.Reason, err)
				continue
			}
			says = refusal.Message
		}
		for _, quote := range []string{r.Namespace + "/" + r.Name, "(" + r.Status.Reason + "): ", r.Status.Message} {
			if !strings.Contains(says, quote) {
				t.Errorf("%q does not contain %q", says, quote)
			}
		}
		quoted++
	}
	if quoted < 20 {
		t.Errorf("only %d requests are recorded", quoted)
	}
}
