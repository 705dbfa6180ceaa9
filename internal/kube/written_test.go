package kube

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
)

func version(uid, version string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), ResourceVersion: version}}
}

func TestWrittenIsAwaitedUntilTheCacheShowsItAndNeverForEver(t *testing.T) {
	for _, c := range []struct {
		name string
		seen *corev1.ConfigMap
		// after is how long ago it was written.
		after, want time.Duration
	}{
		{"an older version is awaited", version("a", "9"), 0, 30 * time.Second},
		{"until 30 s after the write", version("a", "9"), 29 * time.Second, time.Second},
		{"then the cache is believed: the server was restored from an older snapshot", version("a", "9"), 30 * time.Second, 0},
		{"the version that was written is there", version("a", "10"), 0, 0},
		{"somebody else has written since", version("a", "11"), 0, 0},
		{"another object of the same name was never written", version("b", "9"), 0, 0},
		{"a version that cannot be compared is believed", version("a", "x"), 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
			written := Written{Clock: clock}
			written.Store(version("a", "10"))
			clock.Step(c.after)
			if got := written.Await(c.seen); got != c.want {
				t.Errorf("it is awaited for %s, want %s", got, c.want)
			}
		})
	}
}

func TestWrittenForgetsWhatTheCacheShowsAndWhatIsGone(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	written := Written{Clock: clock}
	for i := range 1000 {
		written.Store(version(fmt.Sprint(i), "10"))
	}
	if written.Await(version("0", "10")); len(written.writes) != 999 {
		t.Errorf("%d versions are remembered after one was seen, want 999", len(written.writes))
	}
	clock.Step(maxCacheLag)
	if written.Store(version("new", "10")); len(written.writes) != 1 {
		t.Errorf("%d versions are remembered although nobody asked for them in %s, want 1", len(written.writes), maxCacheLag)
	}
}
