package pacing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// fleetOf is an API server with members. A request takes longer the more members are at work. A
// member is at work from the write until its report.
type fleetOf struct {
	client.Client
	pacer *Pacer
	// request is the time of a request while one member is at work; reports is the time of a member
	// until its report, 0 for none.
	request, reports time.Duration
	refuses          error

	mu                 sync.Mutex
	atWork, top, total int
}

func (s *fleetOf) handle(o client.Object) error {
	s.mu.Lock()
	s.atWork++
	s.top, s.total = max(s.top, s.atWork), s.total+1
	takes := s.request * time.Duration(s.atWork)
	s.mu.Unlock()
	time.Sleep(takes)
	ended := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.atWork--
	}
	if s.refuses != nil || s.reports == 0 {
		ended()
		return s.refuses
	}
	go func() {
		time.Sleep(s.reports)
		ended()
		k, _ := keyOf(o)
		s.pacer.reported(k)
	}()
	return nil
}

func (s *fleetOf) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	return s.handle(o)
}

func (s *fleetOf) Update(_ context.Context, o client.Object, _ ...client.UpdateOption) error {
	return s.handle(o)
}

func (s *fleetOf) Delete(_ context.Context, o client.Object, _ ...client.DeleteOption) error {
	return s.handle(o)
}

func (s *fleetOf) Patch(_ context.Context, o client.Object, _ client.Patch, _ ...client.PatchOption) error {
	return s.handle(o)
}

// counts returns the most members at work at once, and all deliveries.
func (s *fleetOf) counts() (top, total int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.top, s.total
}

// counts returns the deliveries under way, those without a report, and those that wait.
func (p *Pacer) counts() (underWay, unreported, waiting int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.underWay, len(p.unreported), len(p.waiting)
}

// size returns the window.
func (p *Pacer) size() float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.window
}

// newPaced returns a client of a fleet, and the lines of its log.
func newPaced(s *fleetOf) (*paced, func() []string) {
	var mu sync.Mutex
	var lines []string
	s.pacer = New(funcr.New(func(_, line string) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, line)
	}, funcr.Options{}))
	return &paced{s, s.pacer}, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(lines)
	}
}

// deliver writes deliveries, all at once, and returns the time until the last write.
func deliver(t *testing.T, c client.Client, number int) time.Duration {
	t.Helper()
	began := time.Now()
	var writing sync.WaitGroup
	for i := range number {
		writing.Go(func() {
			d, w := &fleet.BundleDeployment{}, &placement.Work{}
			d.Name, w.Name = fmt.Sprint(i), fmt.Sprint(i)
			var err error
			switch i % 4 {
			case 0:
				err = c.Create(t.Context(), d)
			case 1:
				err = c.Update(t.Context(), w)
			case 2:
				err = c.Patch(t.Context(), d, nil)
			default:
				err = c.Delete(t.Context(), w)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	writing.Wait()
	return time.Since(began)
}

func TestAQuickFleetIsDeliveredToAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fleetOf{request: 20 * time.Microsecond, reports: time.Second}
		c, log := newPaced(s)
		if took := deliver(t, c, initial); took > 10*time.Millisecond {
			t.Errorf("%d deliveries took %s", initial, took)
		}
		took := deliver(t, c, 5000)
		if top, total := s.counts(); took > 8*time.Second || top != most || total != initial+5000 || len(log()) != 0 {
			t.Errorf("%d deliveries took %s, %d at once, and the log is %v", total, took, top, log())
		}
		time.Sleep(patience)
	})
}

func TestManySmallDeliveriesLeaveNoRoomForABurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fleetOf{request: 20 * time.Microsecond, reports: time.Second}
		c, _ := newPaced(s)
		for i := range 20 * initial { // one after the other, and some always under way
			d := &fleet.BundleDeployment{}
			d.Name = fmt.Sprint(i)
			if err := c.Create(t.Context(), d); err != nil {
				t.Fatal(err)
			}
			time.Sleep(20 * time.Millisecond)
		}
		synctest.Wait()
		if underWay, _, _ := c.pacer.counts(); underWay == 0 || c.pacer.size() != initial {
			t.Errorf("with %d under way, the window is %v", underWay, c.pacer.size())
		}
		deliver(t, c, 5000)
		time.Sleep(900 * time.Millisecond) // some of the last ones are under way
		small := &placement.Work{}
		small.Name = "small"
		if err := c.Create(t.Context(), small); err != nil {
			t.Fatal(err)
		}
		time.Sleep(900 * time.Millisecond)
		synctest.Wait()
		if underWay, _, _ := c.pacer.counts(); underWay != 1 || c.pacer.size() != initial {
			t.Errorf("after a crowd, with %d under way, the window is %v", underWay, c.pacer.size())
		}
		time.Sleep(patience)
	})
}

func TestASlowFleetGetsFewerDeliveriesAtOnceAndAllInTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fleetOf{request: 50 * time.Millisecond, reports: time.Second} // twenty at work make a write slow
		c, log := newPaced(s)
		deliver(t, c, 500)
		s.mu.Lock()
		s.top = 0
		s.mu.Unlock()
		deliver(t, c, 500)
		if top, total := s.counts(); top > 24 || total != 1000 || len(log()) != 1 {
			t.Errorf("%d of %d members were at work at once, and the log is %v", top, total, log())
		}
		time.Sleep(2 * patience)
		synctest.Wait()
		s.request = 20 * time.Microsecond
		if took := deliver(t, c, initial); took > 10*time.Millisecond || len(log()) != 2 {
			t.Errorf("%d deliveries to the quick server took %s, and the log is %v", initial, took, log())
		}
		time.Sleep(patience)
	})
}

func TestAMemberWithoutAReportHoldsOthersForAMomentOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newPaced(&fleetOf{request: time.Microsecond})
		if took := deliver(t, c, initial+1); took < patience || took > patience+time.Second {
			t.Errorf("a delivery more than the window took %s", took)
		}
		time.Sleep(2 * patience)
		if underWay, unreported, _ := c.pacer.counts(); underWay != 0 || unreported != 0 {
			t.Errorf("%d deliveries are under way, %d without a report", underWay, unreported)
		}
	})
}

func TestAReportEndsADeliveryAndAChangeOfTheHubDoesNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newPaced(&fleetOf{})
		cached := &informertest.FakeInformers{Scheme: runtime.NewScheme()}
		for _, add := range []func(*runtime.Scheme) error{fleet.AddToScheme, placement.AddToScheme} {
			if err := add(cached.Scheme); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.pacer.Watch(t.Context(), cached); err != nil {
			t.Fatal(err)
		}
		for _, o := range []client.Object{&fleet.BundleDeployment{}, &placement.Work{}} {
			informer, err := cached.FakeInformerFor(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			changed := o.DeepCopyObject().(client.Object)
			changed.SetGeneration(2)
			informer.Update(o, changed)
			if underWay, _, _ := c.pacer.counts(); underWay != 1 {
				t.Errorf("%T: %d deliveries are under way after the write of the hub", o, underWay)
			}
			informer.Update(changed, changed)
			if underWay, _, _ := c.pacer.counts(); underWay != 0 {
				t.Errorf("%T: %d deliveries are under way after the report", o, underWay)
			}
		}
	})
}

func TestADeliveryThatFailsMakesRoomAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newPaced(&fleetOf{refuses: errors.New("refused")})
		for range 2 * initial {
			if err := c.Create(t.Context(), &placement.Work{}); err == nil {
				t.Fatal("no error")
			}
		}
		if underWay, unreported, _ := c.pacer.counts(); underWay != 0 || unreported != 0 {
			t.Errorf("%d deliveries are under way, %d without a report", underWay, unreported)
		}
	})
}

func TestTheSlowWritesOfOneMomentShrinkTheWindowOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newPaced(&fleetOf{request: time.Second, reports: time.Second})
		deliver(t, c, initial)
		if size := c.pacer.size(); size != initial/2 {
			t.Errorf("the window is %v", size)
		}
		time.Sleep(patience)
	})
}

func TestADeliveryWithoutItsCallerTakesNoTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fleetOf{request: time.Second, reports: time.Second}
		c, _ := newPaced(s)
		c.pacer.window = 1
		go func() { _ = c.Create(context.Background(), &placement.Work{}) }()
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- c.Create(ctx, &placement.Work{}) }()
		synctest.Wait()
		cancel()
		err := <-ended
		_, total := s.counts()
		if _, _, waiting := c.pacer.counts(); !errors.Is(err, context.Canceled) || total != 1 || waiting != 0 {
			t.Errorf("%v, after %d writes", err, total)
		}
		deliver(t, c, 1)
		time.Sleep(2 * patience)
		_, total = s.counts()
		if underWay, _, _ := c.pacer.counts(); total != 2 || underWay != 0 {
			t.Errorf("%d writes ended, and %d are under way", total, underWay)
		}
	})
}

func TestOtherObjectsDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newPaced(&fleetOf{request: time.Second})
		c.pacer.window = 0
		for _, write := range []func() error{
			func() error { return c.Create(t.Context(), &fleet.Cluster{}) },
			func() error { return c.Update(t.Context(), &corev1.Secret{}) },
			func() error { return c.Delete(t.Context(), &fleet.Bundle{}) },
		} {
			if err := write(); err != nil {
				t.Error(err)
			}
		}
	})
}
