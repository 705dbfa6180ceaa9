package kube

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func configMap(name, version string) client.Object {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version}}
}

func TestAWriteIsExpectedUntilTheCacheShowsItAndNeverForEver(t *testing.T) {
	for _, c := range []struct {
		name   string
		cached []client.Object
		// after is how long ago it was written.
		after, want time.Duration
	}{
		{"an older version is not enough", []client.Object{configMap("a", "9")}, 0, 30 * time.Second},
		{"nor is none", nil, 0, 30 * time.Second},
		{"nor another object", []client.Object{configMap("b", "11")}, 0, 30 * time.Second},
		{"the wait ends 30 s after the write", []client.Object{configMap("a", "9")}, 29 * time.Second, time.Second},
		{"then the cache is believed: the server was restored from an older snapshot", []client.Object{configMap("a", "9")}, 30 * time.Second, 0},
		{"the version that was written is there", []client.Object{configMap("a", "10")}, 0, 0},
		{"somebody else has written since", []client.Object{configMap("a", "11")}, 0, 0},
		{"a version that cannot be compared is believed", []client.Object{configMap("a", "x")}, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
			expected, key := Expectations{Clock: clock}, types.NamespacedName{Name: "k"}
			expected.Expect(key, configMap("a", "10"))
			clock.Step(c.after)
			if got := expected.Await(key, c.cached...); got != c.want {
				t.Errorf("the wait is %s, want %s", got, c.want)
			}
			if got := expected.Await(types.NamespacedName{Name: "other"}); got != 0 {
				t.Errorf("another key waits for %s", got)
			}
		})
	}
}

func TestAllThatWasWrittenForAKeyIsExpected(t *testing.T) {
	expected, key := Expectations{Clock: clocktesting.NewFakeClock(time.Now()), Timeout: time.Second}, types.NamespacedName{Name: "k"}
	expected.Expect(key, configMap("a", "10"))
	expected.Expect(key, configMap("b", "11"))
	pending, wait := expected.Pending(key, configMap("a", "10"))
	if wait != time.Second || pending.GetName() != "b" {
		t.Errorf("%v is awaited for %s, want b for 1s", pending, wait)
	}
	if expected.Forget(key); expected.Await(key) != 0 {
		t.Error("what was forgotten is still awaited")
	}
}

func TestExpectationsForgetWhatTheCacheShowsAndWhatIsGone(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	expected := Expectations{Clock: clock}
	for i := range 1000 {
		expected.Expect(types.NamespacedName{Name: fmt.Sprint(i)}, configMap("a", "10"))
	}
	if expected.Await(types.NamespacedName{Name: "0"}, configMap("a", "10")); len(expected.writes) != 999 {
		t.Errorf("%d writes are remembered after one was seen, want 999", len(expected.writes))
	}
	clock.Step(maxCacheLag)
	if expected.Expect(types.NamespacedName{Name: "new"}, configMap("a", "10")); len(expected.writes) != 1 {
		t.Errorf("%d writes are remembered although nobody asked for them in %s, want 1", len(expected.writes), maxCacheLag)
	}
}

func TestNothingOfAnObjectIsKeptThatNobodyAsksFor(t *testing.T) {
	for _, whole := range []bool{false, true} {
		expected := Expectations{Clock: clocktesting.NewFakeClock(time.Now()), Whole: whole}
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "s", ResourceVersion: "10", Labels: map[string]string{"a": "b"}},
			Data:       map[string][]byte{"values": []byte("secret")},
		}
		expected.Expect(client.ObjectKeyFromObject(secret), secret)
		kept, _ := expected.Pending(client.ObjectKeyFromObject(secret))
		if is := kept == client.Object(secret); is != whole {
			t.Errorf("of one that keeps whole objects: %t, it is the object: %t", whole, is)
		}
		if kept.GetName() != "s" || kept.GetNamespace() != "n" || kept.GetResourceVersion() != "10" || !whole && kept.GetLabels() != nil {
			t.Errorf("what is kept is %+v", kept)
		}
	}
}
