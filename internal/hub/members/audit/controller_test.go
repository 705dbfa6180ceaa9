package audit

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/muster-fleet/muster/api/muster/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
)

// delays is a queue that notes after how long what is reconciled; nothing may be
// added to it at once.
type delays struct {
	controller.Queue
	of map[string]time.Duration
}

func (d delays) AddAfter(request reconcile.Request, after time.Duration) { d.of[request.Name] = after }

func TestACrowdOfNewEntriesIsLookedAtOnce(t *testing.T) {
	queue := delays{of: map[string]time.Duration{}}
	entry := &v1alpha1.AuditEntry{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters"}}
	for range 100 {
		onEntry(context.Background(), nil, entry, queue)
	}
	onEntry(context.Background(), entry, nil, queue)
	if len(queue.of) != 1 || queue.of["clusters"] != gather {
		t.Errorf("what is looked at is %v", queue.of)
	}
}
