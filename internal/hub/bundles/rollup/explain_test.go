package rollup

import (
	"fmt"
	"testing"
	"time"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// TestEqualCausesAreOneLine has a cause on many Clusters, another one, and a Cluster that is lost.
func TestEqualCausesAreOneLine(t *testing.T) {
	const image, quota = "Deployment shop/web: Available: 0/1, container web: ErrImagePull: not found", "Deployment shop/web: exceeded quota"
	var entries []Entry
	for i := range 40 {
		entries = append(entries, Entry{Name: fmt.Sprintf("c%02d", i), State: fleet.StateNotReady, Message: image})
	}
	entries = append(entries, Entry{Name: "y", State: fleet.StateNotReady, Message: quota},
		Entry{Name: "z", State: fleet.StateReady}.AsOf("agent lost", time.Unix(0, 0)))
	want := "NotReady(42) [Clusters c00, c01, c02 and 37 more: " + image + "; Cluster y: " + quota +
		"; Cluster z: agent lost, as of 1970-01-01T00:00:00Z: Ready]"
	if got := ExplainAll("Cluster", entries); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	summary := Summarize(entries)
	named := map[string]int{}
	for _, r := range summary.NonReadyResources {
		named[r.Message]++
	}
	if len(summary.NonReadyResources) != maxNamed || named[image] != maxNamed-2 || named[quota] != 1 || len(named) != 3 {
		t.Errorf("the summary names %v", named)
	}
	// A Cluster is lost, and two are not ready.
	want = "NotReady(3) [Clusters c00, c01: " + image + "; Cluster z: agent lost, as of 1970-01-01T00:00:00Z: Ready]"
	if got := Explain("Cluster", Summarize(append(entries[:2:2], entries[41]))); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
