package deploy

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// server is an API server with Leases that may be away.
type server struct {
	*fake.Clientset
	mu     sync.Mutex
	away   bool
	writes []time.Time
}

// written is when the Lease was written.
func (s *server) written() []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.writes)
}

// setAway cuts the holder off from the API server, or ends that.
func (s *server) setAway(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = away
}

func newServer() *server {
	s := &server{Clientset: fake.NewClientset()}
	s.PrependReactor("*", "leases", func(action clienttesting.Action) (bool, runtime.Object, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.away {
			return true, nil, errors.New("the API server is away")
		}
		if action.GetVerb() != "get" {
			s.writes = append(s.writes, time.Now())
		}
		return false, nil, nil
	})
	return s
}

func (s *server) lease(t *testing.T) *coordinationv1.Lease {
	t.Helper()
	found, err := s.CoordinationV1().Leases("agents").Get(t.Context(), "fleet-agent", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func leaseOf(holder string) lease {
	return lease{namespace: "agents", name: "fleet-agent", holder: holder, duration: leaseDuration}
}

func ignore(error) {}

func TestLeaseIsWrittenOnceInFifteenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		acquired, release, err := leaseOf("one").acquire(t.Context(), s, ignore, func() { t.Error("it lost the Lease") })
		if err != nil {
			t.Fatal(err)
		}
		<-acquired
		time.Sleep(time.Hour)
		writes := s.written()
		if n := len(writes); n < 170 || n > 241 {
			t.Errorf("%d writes in an hour", n)
		}
		for i := 1; i < len(writes); i++ {
			if apart := writes[i].Sub(writes[i-1]); apart < 15*time.Second || apart > 21*time.Second {
				t.Fatalf("two writes are %s apart", apart)
			}
		}
		release()
		if holder := s.lease(t).Spec.HolderIdentity; holder != nil && *holder != "" {
			t.Errorf("after its release the Lease is held by %s", *holder)
		}
	})
}

func TestHolderThatCannotRenewGivesUpBeforeAnotherTakesTheLease(t *testing.T) {
	for offset := time.Duration(0); offset <= 20*time.Second; offset += 500 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			s := newServer()
			lost := make(chan time.Time, 1)
			acquired, release, err := leaseOf("one").acquire(t.Context(), s, ignore, func() { lost <- time.Now() })
			if err != nil {
				t.Fatal(err)
			}
			<-acquired
			time.Sleep(time.Minute + offset)
			s.setAway(true) // for the holder, which may be cut off from the API server that others reach
			writes, cut := s.written(), time.Now()
			last := writes[len(writes)-1]
			at := <-lost
			if end := last.Add(leaseDuration); !at.Before(end) {
				t.Errorf("cut off %s after a write, it gives up %s after the end of its Lease", cut.Sub(last), at.Sub(end))
			}
			if at.Sub(cut) < 20*time.Second {
				t.Errorf("cut off %s after a write, it gives up after %s", cut.Sub(last), at.Sub(cut))
			}
			release()
		})
	}
}

func TestWaitingDeployerTakesTheLeaseOfOneThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		first, release, err := leaseOf("one").acquire(t.Context(), s, ignore, func() { t.Error("the first lost the Lease") })
		if err != nil {
			t.Fatal(err)
		}
		<-first
		second, releaseSecond, err := leaseOf("two").acquire(t.Context(), s, ignore, func() { t.Error("the second lost the Lease") })
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		select {
		case <-second:
			t.Fatal("two hold the Lease")
		default:
		}
		release()
		released := time.Now()
		<-second
		if took := time.Since(released); took > 10*time.Second {
			t.Errorf("the second waited %s after the release", took)
		}
		releaseSecond()
	})
}
