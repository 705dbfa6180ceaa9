package hostnode

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

func TestTally(t *testing.T) {
	const p, f = true, false
	for name, test := range map[string]struct {
		start            bool
		passes, failures int32
		results          []bool
		// want is the state after each result at which a threshold was reached.
		want []bool
	}{
		"ready at the first pass":                  {f, 1, 3, []bool{f, p}, []bool{p}},
		"a pass that repeats is no change":         {f, 1, 3, []bool{p, p, p}, []bool{p}},
		"two passes in a row are needed":           {f, 2, 3, []bool{p, f, p, p}, []bool{p}},
		"unready after three failures in a row":    {p, 1, 3, []bool{f, f, p, f, f, f}, []bool{f}},
		"ready, unready, ready":                    {f, 1, 1, []bool{p, f, p}, []bool{p, f, p}},
		"a container that never starts is told so": {f, 1, 2, []bool{f, f, f}, []bool{f}},
	} {
		t.Run(name, func(t *testing.T) {
			tally := tally{ok: test.start, passesNeeded: test.passes, failuresNeeded: test.failures}
			var got []bool
			for _, result := range test.results {
				if tally.observe(result) {
					got = append(got, tally.ok)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBackOffDoublesAndResets(t *testing.T) {
	var b backOff
	runs := []time.Duration{0, 0, 0, 0, 0, 0, 0, 0, 11 * time.Minute, 0}
	var got []time.Duration
	for _, ran := range runs {
		got = append(got, b.next(ran))
	}
	want := []time.Duration{0, 10, 20, 40, 80, 160, 300, 300, 0, 10}
	for i := range want {
		want[i] *= time.Second
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("waits (-want +got):\n%s", diff)
	}
}

func TestAddresses(t *testing.T) {
	a := newAddresses([3]byte{127, 7, 8})
	take := func(uid, wanted string) string {
		t.Helper()
		got, err := a.take(types.UID(uid), wanted)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	got := []string{
		take("a", ""),
		take("b", "127.7.8.9"), // its address before the restart
		take("c", "127.7.8.9"), // taken
		take("d", "10.0.0.1"),  // not of this network
	}
	a.release("a")
	got = append(got, take("e", "")) // a freed address rests
	if diff := cmp.Diff([]string{"127.7.8.1", "127.7.8.9", "127.7.8.2", "127.7.8.3", "127.7.8.4"}, got); diff != "" {
		t.Errorf("addresses (-want +got):\n%s", diff)
	}
}
