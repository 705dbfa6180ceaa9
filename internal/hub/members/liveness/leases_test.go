package liveness

import (
	"context"
	"fmt"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// informers is a cache of Leases that shows what a test says.
type informers struct {
	cache.Cache
	cache.Informer
	handlers []toolscache.ResourceEventHandler
}

func (i *informers) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return i, nil
}

func (i *informers) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	i.handlers = append(i.handlers, h)
	return following{synced: true}, nil
}

func (i *informers) RemoveEventHandler(toolscache.ResourceEventHandlerRegistration) error {
	i.handlers = nil
	return nil
}

func (i *informers) renew(namespace string) {
	lease := func(second int) *coordinationv1.Lease {
		at := metav1.NewMicroTime(time.Date(2026, 1, 2, 3, 4, second, 0, time.UTC))
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}, Spec: coordinationv1.LeaseSpec{RenewTime: &at}}
	}
	for _, h := range i.handlers {
		h.OnUpdate(lease(1), lease(2))
	}
}

// TestAStandbyKeepsNoBeats also renews more Leases than an unread subscriber has room for.
func TestAStandbyKeepsNoBeats(t *testing.T) {
	leases := &informers{}
	tracker, changes, _ := start()
	lead, err := WatchLeases(t.Context(), leases, tracker)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3000 {
		leases.renew(fmt.Sprintf("member-%d", i))
	}
	expect(t, tracker, "member-1", Unknown)
	if len(changes) > 0 {
		t.Errorf("%d changes are announced", len(changes))
	}

	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- lead(ctx) }()
	for !tracker.leasesCounted() {
		time.Sleep(time.Millisecond)
	}
	leases.renew("member-1")
	if got := next(t, changes); got != "member-1" {
		t.Errorf("%s was announced", got)
	}
	expect(t, tracker, "member-1", Online)
	expect(t, tracker, "member-2", Unknown)
	end()
	if err := <-ended; err != nil || len(leases.handlers) > 0 {
		t.Errorf("it ends with %v and %d handlers", err, len(leases.handlers))
	}
}
