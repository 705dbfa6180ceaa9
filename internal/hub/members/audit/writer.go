// Package audit writes AuditEntries about cluster admissions and revocations, one for each fact,
// and deletes them by age and number.
//
// Audit owns AuditEntries whole. Its invariants: a fact has one entry, however often it is written,
// because the fact determines the entry's name. An entry never changes. Nothing in the hub depends
// on an entry, so the writer logs a refusal by the API server and continues.
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
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
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
	// writeTimeout bounds the wait of a grant for its entry: an admission webhook for all kinds may
	// never answer.
	writeTimeout = 2 * time.Second
	// unservedPause is the pause between attempts while the API server does not serve AuditEntries:
	// each attempt costs discovery.
	unservedPause = 5 * time.Second
	// maxMessage limits the written part of a message; the maximum of spec.message is a little more.
	maxMessage = 2000
)

// Fact is the subject of an entry.
type Fact struct {
	// Namespace of the entry: the workspace, or the hub's system namespace for MemberClusters.
	Namespace string
	// ID distinguishes the fact from all others of its reason: the UID of the request, for example. ID
	// becomes a part of the entry's name.
	ID []string
	// Spec is the entry's spec without the time.
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
	// Policies reports whether a policy protects the annotation with the user's name.
	Policies *admission.Checker

	mu sync.Mutex
	// retry is the time of the next attempt while the API server does not serve the kind; zero while
	// it does.
	retry time.Time
}

// Attribute names the acting user in a fact, from an annotation. Attribute trusts the annotation
// only while the given policy of the chart is in force.
func (w *Writer) Attribute(ctx context.Context, fact *Fact, policy, user, did string) {
	if fact.Spec.Who = w.Known(ctx, policy, user); fact.Spec.Who != "" {
		return
	}
	fact.Spec.Message += fmt.Sprintf("; the user who %s is unknown, because the API server attributed the change to no user", did)
}

// Known returns the user in an annotation, if the given policy of the chart is in force; else "".
func (w *Writer) Known(ctx context.Context, policy, user string) string {
	if w == nil || user == "" || !w.Policies.InForce(ctx, policy) {
		return ""
	}
	return user
}

// again are the attempts after an error that may pass at once. The error of a failing webhook is
// one of them, and does not pass.
var again = wait.Backoff{Steps: 3, Duration: 100 * time.Millisecond, Factor: 2}

// Write creates the entry of a fact unless it exists. An error means that the API server accepts no
// writes at the moment. The caller then repeats the reconcile, as after any other write. Write logs
// any other refusal and returns nil.
func (w *Writer) Write(ctx context.Context, fact Fact) error {
	if w == nil || w.Config.Current().Audit.MaxEntries == 0 || !w.mayWrite() {
		return nil
	}
	entry := fact.Entry(w.Clock.Now())
	limited, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	err := retry.OnError(again, mayPass, func() error {
		return client.IgnoreAlreadyExists(w.Client.Create(limited, entry, kube.FieldOwner))
	})
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

// busy reports whether the API server may accept the entry later. The API server reports excess
// requests itself; a timeout of this writer or a failing admission webhook may last forever.
func busy(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return !errors.Is(err, context.DeadlineExceeded) && !kube.NotServed(err) // no answer at all
	}
	return apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err)
}

// mayPass reports whether an error may pass at once: an internal error, a timeout, or a conflict of
// ResourceQuotas.
func mayPass(err error) bool {
	return apierrors.IsInternalError(err) || apierrors.IsConflict(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err)
}

func (w *Writer) mayWrite() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.Clock.Now().Before(w.retry)
}

// lost logs the content of a lost entry. While the API server does not serve the kind, lost logs
// only the first one.
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
	ctrl.LoggerFrom(ctx).Error(err, "Failed to write an AuditEntry, which is lost", "entry", entry.Namespace+"/"+entry.Name,
		"reason", spec.Reason, "object", spec.Object.Name, "user", spec.Who, "token", spec.Token, "agentKey", spec.Key, "message", spec.Message)
}

// written notes that the API server serves the kind.
func (w *Writer) written() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.retry = time.Time{}
}
