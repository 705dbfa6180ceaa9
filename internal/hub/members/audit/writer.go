// Package audit writes AuditEntries, one for each fact about who was let into the fleet or put out of it, and deletes them by age and number.
//
// It owns AuditEntries whole. Its invariants: a fact has one entry, however often it is written, because the name of the entry is made of the fact; no entry
// is ever changed; nothing that the hub does depends on an entry, so that what the API server refuses is logged and left.
package audit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/api/muster/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/joining/admission"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

const (
	// writeTimeout is how long a grant waits for its entry at most: an admission webhook for all kinds may never answer.
	writeTimeout = 2 * time.Second
	// unservedPause is how long nothing is written while the kind is not served: each attempt costs discovery.
	unservedPause = 5 * time.Second
	// maxMessage is how much of a message is written; the maximum of spec.message is a little more.
	maxMessage = 2000
)

// Fact is what an entry is about.
type Fact struct {
	// Namespace is where the entry is: the workspace, or the hub's system namespace for MemberClusters.
	Namespace string
	// ID tells the fact from all others of its reason: the UID of the request, for example. It becomes a part of the entry's name.
	ID []string
	// Spec is the entry, but for the time.
	Spec v1alpha1.AuditEntrySpec
}

// Entry returns the entry of a fact.
func (f Fact) Entry(now time.Time) *v1alpha1.AuditEntry {
	entry := &v1alpha1.AuditEntry{Spec: f.Spec}
	entry.Namespace, entry.Name = f.Namespace, strings.ToLower(naming.SafeConcat(append([]string{string(f.Spec.Reason)}, f.ID...)...))
	entry.Spec.Time = metav1.NewTime(now)
	entry.Spec.Message = kube.Clip(entry.Spec.Message, maxMessage)
	return entry
}

// Writer writes entries. A nil Writer writes none.
type Writer struct {
	Client client.Client
	Clock  clock.PassiveClock
	Config *settings.Controller
	// Policies say whether what an annotation says of who wrote it can be believed.
	Policies *admission.Checker

	mu sync.Mutex
	// retry is when the kind is tried again that was not served the last time; zero if it was.
	retry time.Time
}

// Attribute names in a fact the user who did it, as an annotation says that a policy of the chart confines.
func (w *Writer) Attribute(ctx context.Context, fact *Fact, policy, user, did string) {
	if w != nil && user != "" && w.Policies.InForce(ctx, policy) {
		fact.Spec.Who = user
		return
	}
	fact.Spec.Message += fmt.Sprintf("; who %s is not known, because the API server has not attributed that to anybody", did)
}

// Write creates the entry of a fact unless that is there. An error means that the API server takes no writes at the moment, and the caller's reconcile is to
// be repeated, as after any other write. What the API server refuses for another reason is logged: it stops nobody.
func (w *Writer) Write(ctx context.Context, fact Fact) error {
	if w == nil || w.Config.Current().Audit.MaxEntries == 0 || !w.mayWrite() {
		return nil
	}
	entry := fact.Entry(w.Clock.Now())
	limited, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	err := client.IgnoreAlreadyExists(w.Client.Create(limited, entry, kube.FieldOwner))
	switch {
	case err == nil:
		w.written()
		return nil
	case ctx.Err() != nil || busy(err):
		return fmt.Errorf("creating AuditEntry %s/%s: %w", entry.Namespace, entry.Name, err)
	}
	w.lost(ctx, err, entry)
	return nil
}

// busy says whether the API server would have taken the entry at another moment. It says so itself of the rate of requests; a timeout of ours, or an admission
// webhook that fails, may last for ever.
func busy(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return !errors.Is(err, context.DeadlineExceeded) && !kube.NotServed(err) // no answer at all
	}
	return apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err)
}

func (w *Writer) mayWrite() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.Clock.Now().Before(w.retry)
}

// lost logs what the entry would have said, of a kind that is not served only the first time.
func (w *Writer) lost(ctx context.Context, err error, entry *v1alpha1.AuditEntry) {
	if kube.NotServed(err) {
		w.mu.Lock()
		known := !w.retry.IsZero()
		w.retry = w.Clock.Now().Add(unservedPause)
		w.mu.Unlock()
		if known {
			return
		}
	}
	spec := entry.Spec
	ctrl.LoggerFrom(ctx).Error(err, "AuditEntry was not written, and is lost", "entry", entry.Namespace+"/"+entry.Name, "reason", spec.Reason,
		"object", spec.Object.Name, "who", spec.Who, "token", spec.Token, "key", spec.Key, "message", spec.Message)
}

// written notes that the kind is served.
func (w *Writer) written() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.retry = time.Time{}
}
