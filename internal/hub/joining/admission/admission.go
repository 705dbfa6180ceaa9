// Package admission checks that the admission policies of the hub's chart exist and have an effect.
// The hub relies on them where RBAC is too coarse.
//
// Admission writes nothing but Events; it creates objects only as a dry run. Its invariant: the hub
// trusts a protected annotation only with proof of the policy's effect.
package admission

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/author"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// PlacementAuthor is the name of the policies that store the authors of placements, overrides and
// envelopes, and of their bindings.
const PlacementAuthor = "muster-placement-author"

// RegistrationApproval is the name of the policies that store who approved or denied a request.
const RegistrationApproval = "muster-registration-approval"

// validating lists the validating policies of the chart; their bindings have the same names.
var validating = []string{
	"muster-audit", "muster-bindings", "muster-cluster-name", "muster-cluster-status", "muster-downstream-resources",
	"muster-hub", "muster-hub-clusters", "muster-hub-leases", "muster-hub-snapshots", "muster-member-annotations", "muster-member-author",
	"muster-member-epoch", "muster-member-identity", "muster-member-metadata", "muster-member-namespaces", PlacementAuthor,
	"muster-protection", "muster-quarantine-author", RegistrationApproval, "muster-registration-status", RegistrationToken,
	"muster-revocation-author",
	"muster-run-status",
}

const (
	// effectLife is the validity of a proven effect, absenceLife the validity of a proven absence: the
	// policy may just have been installed.
	effectLife, absenceLife = time.Minute, 5 * time.Second
	// forged is a nonexistent user, and must not be the author of any object.
	forged = "system:muster:nobody"
	// askTimeout bounds a query of the API server, including its webhooks.
	askTimeout = 10 * time.Second
	// maxError bounds the text of an error in a message.
	maxError = 512
)

// Checker checks the policies, and keeps the result for a while.
type Checker struct {
	// Client creates, as a dry run, objects for a policy to change or refuse; Live reads policies.
	Client   client.Client
	Live     client.Reader
	Clock    clock.PassiveClock
	Recorder events.EventRecorder
	Log      logr.Logger
	// Namespace is the hub's system namespace.
	Namespace string

	mu      sync.Mutex
	checked bool
	problem string
	until   time.Time
	// requests is the newest answer of Requests. absence is its validity if the policy has no effect.
	// asking and askingAuthors: a query is in progress, and the previous answer counts meanwhile.
	requests              Attribution
	absence               time.Duration
	asking, askingAuthors bool
	// inForce holds, for each queried policy, whether it exists and how long the answer is valid.
	inForce map[string]presence
}

type presence struct {
	there bool
	until time.Time
}

// InForce reports whether a validating policy of the chart, and its binding, exist. After a failed
// query it returns false.
func (c *Checker) InForce(ctx context.Context, name string) bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	now := c.Clock.Now()
	cached := c.inForce[name]
	c.mu.Unlock()
	if now.Before(cached.until) {
		return cached.there
	}
	limited, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	missing, err := c.missing(limited, name)
	if err != nil {
		c.Log.Error(err, "Failed to read an admission policy", "policy", name)
	}
	cached = presence{there: err == nil && len(missing) == 0, until: now.Add(effectLife)}
	if !cached.there {
		cached.until = now.Add(absenceLife)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inForce == nil {
		c.inForce = map[string]presence{}
	}
	c.inForce[name] = cached
	return cached.there
}

// missing returns the missing ones of a policy and its binding.
func (c *Checker) missing(ctx context.Context, name string) (missing []string, err error) {
	for _, kind := range []string{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"} {
		object := kube.Metadata(schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: kind})
		switch getErr := c.Live.Get(ctx, client.ObjectKey{Name: name}, object); {
		case apierrors.IsNotFound(getErr) || meta.IsNoMatchError(getErr):
			missing = append(missing, kind+" "+name)
		case getErr != nil:
			err = errors.Join(err, fmt.Errorf("reading %s %s: %w", kind, name, getErr))
		}
	}
	return missing, err
}

// Start warns of missing or ineffective policies when the hub begins to lead.
func (c *Checker) Start(ctx context.Context) error {
	problem, err := c.Authors(ctx)
	if err != nil {
		c.Log.Error(err, "Failed to check the admission policies; the next placement repeats the check")
	}
	var missing []string
	for _, name := range validating {
		of, err := c.missing(ctx, name)
		if err != nil {
			c.Log.Error(err, "Failed to read an admission policy", "policy", name)
		}
		missing = append(missing, of...)
	}
	switch {
	case problem != "":
	case len(missing) > 0:
		c.warn(fmt.Sprintf("%s is missing: restore it with helm upgrade of the chart fleet", strings.Join(missing, ", ")))
	default:
		c.Requests(ctx) // warns if its policy has no effect
	}
	return nil
}

// Authors returns the problem of the policies for authors, or "" if the authors are reliable.
func (c *Checker) Authors(ctx context.Context) (problem string, err error) {
	c.mu.Lock()
	now := c.Clock.Now()
	if c.checked && (now.Before(c.until) || c.askingAuthors) {
		problem = c.problem
		c.mu.Unlock()
		return problem, nil
	}
	c.askingAuthors = true
	c.mu.Unlock()
	limited, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	effective, err := c.refusesForgery(limited)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.askingAuthors = false
	if err != nil {
		return "", fmt.Errorf("checking that the admission policy %s has an effect: %w", PlacementAuthor, err)
	}
	before := c.problem
	c.problem, c.until = "", now.Add(effectLife)
	if !effective {
		c.problem = fmt.Sprintf("the admission policy %s has no effect, and the authors of placements, overrides and envelopes are "+
			"unknown: restore it with helm upgrade of the chart fleet (Kubernetes 1.30 or newer)", PlacementAuthor)
		c.until = now.Add(absenceLife)
	}
	switch {
	case c.problem != "" && c.problem != before:
		c.warn(c.problem)
	case c.problem == "" && before != "":
		c.Log.Info("Admission policy has an effect again", "policy", PlacementAuthor)
	}
	c.checked = true
	return c.problem, nil
}

// refusesForgery reports whether the policy prevents objects with a forged author: a placement, an
// override and an envelope.
func (c *Checker) refusesForgery(ctx context.Context) (bool, error) {
	meta := metav1.ObjectMeta{Namespace: c.Namespace, Name: "muster-admission-check"}
	selectors := []placement.ResourceSelector{{Version: "v1", Kind: "ConfigMap", Name: "none"}}
	rp := &placement.ResourcePlacement{ObjectMeta: meta, Spec: placement.PlacementSpec{ResourceSelectors: selectors}}
	ro := &placement.ResourceOverride{ObjectMeta: meta, Spec: placement.ResourceOverrideSpec{
		ResourceSelectors: selectors, Policy: &placement.OverridePolicy{
			OverrideRules: []placement.OverrideRule{{OverrideType: placement.OverrideDelete}},
		},
	}}
	envelope := &placement.ResourceEnvelope{ObjectMeta: meta, Data: map[string]placement.Manifest{"none": {RawExtension: runtime.RawExtension{
		Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"none"}}`),
	}}}}
	for _, forgery := range []client.Object{rp, ro, envelope} {
		forgery.SetAnnotations(map[string]string{author.AnnotationName: forged})
		err := c.Client.Create(ctx, forgery, client.DryRunAll, kube.FieldOwner)
		switch {
		case forgery != rp && kube.NotServed(err),
			err != nil && strings.Contains(err.Error(), fmt.Sprintf("ValidatingAdmissionPolicy '%s'", PlacementAuthor)):
		case err != nil:
			return false, err
		case forgery.GetAnnotations()[author.AnnotationName] == forged:
			return false, nil
		}
	}
	return true, nil
}

// warn logs a problem, and emits an Event on the hub's ConfigMap.
func (c *Checker) warn(problem string) {
	c.Log.Info("Admission policy is missing", "reason", problem)
	settings := &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{
			Namespace: c.Namespace, Name: naming.HubConfigMap,
		},
	}
	c.Recorder.Eventf(settings, nil, corev1.EventTypeWarning, reasons.PolicyMissing, "Check", "%s", problem)
}
