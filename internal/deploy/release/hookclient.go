package release

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"helm.sh/helm/v4/pkg/kube"
	helm "helm.sh/helm/v4/pkg/release/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/muster-fleet/muster/internal/deploy/readiness"
)

// hookClient makes Helm continue the hooks of an interrupted attempt. Helm itself deletes the Job
// of a hook and starts it again, so a migration of a database would run twice.
type hookClient struct {
	*kube.Client
	ctx    context.Context //nolint:containedctx // Helm's interface has none
	acting *Cluster
	owner  hookOwner
	// earlier are the hooks from the interrupted attempts, the newest attempt first.
	earlier []*helm.Hook
	// runs are the hooks of this attempt.
	runs map[hookKey]hookRun
	// store stores the progress of the hooks; nil before the revision is stored. unstored is set if a
	// hook has ended since the last call of store.
	store    func()
	unstored bool
	// jobs are the ordinary Jobs of the release, without hooks.
	jobs *jobRuns
}

type hookKey struct{ kind, namespace, name string }

// hookRun is the action for a hook in this attempt.
type hookRun int

const (
	// runFresh: Helm creates it.
	runFresh hookRun = iota
	// runGoesOn: its object from the earlier attempt is running, or has succeeded.
	runGoesOn
	// runIsOver: it succeeded in the earlier attempt, and its object is gone.
	runIsOver
	// runEnded: it has run in this attempt.
	runEnded
)

// attempts returns the newest interrupted revisions with the deployment ID and the sync generation
// of the request, the newest first. It stops at the first other revision.
func (p past) attempts(r Request) (revisions []*helm.Release) {
	for _, revision := range p.cutOff {
		if revision.Chart == nil || revision.Chart.Metadata == nil {
			return revisions
		}
		was := revision.Chart.Metadata.Annotations
		if was[annotationDeploymentID] != r.DeploymentID ||
			was[annotationSyncGeneration] != strconv.FormatInt(r.Options.ForceSyncGeneration, 10) {
			return revisions
		}
		revisions = append(revisions, revision)
	}
	return revisions
}

// resume returns the hooks of the interrupted attempts.
func (p past) resume(r Request) (hooks []*helm.Hook) {
	for _, revision := range p.attempts(r) {
		hooks = append(hooks, revision.Hooks...)
	}
	return hooks
}

// Delete implements kube.Interface. Helm calls it for hooks, and for the objects of a rolled back
// installation.
func (h *hookClient) Delete(resources kube.ResourceList, _ metav1.DeletionPropagation) (*kube.Result, []error) {
	fresh, err := h.without(resources, runGoesOn, runIsOver)
	if err != nil {
		return nil, []error{err}
	}
	if len(fresh) == 0 && len(resources) > 0 {
		return &kube.Result{}, nil
	}
	// Helm deletes a successful hook without a trace, so its end is stored first.
	h.storeRuns()
	return h.owner.delete(h.ctx, h.acting, fresh)
}

// Create implements kube.Interface.
func (h *hookClient) Create(resources kube.ResourceList, options ...kube.ClientCreateOption) (*kube.Result, error) {
	fresh, err := h.without(resources, runGoesOn, runIsOver)
	if err != nil {
		return nil, err
	}
	if len(fresh) == 0 && len(resources) > 0 {
		return &kube.Result{Created: resources}, nil
	}
	h.storeRuns()
	return h.Client.Create(fresh, options...)
}

// GetWaiterWithOptions implements kube.InterfaceWaitOptions.
func (h *hookClient) GetWaiterWithOptions(strategy kube.WaitStrategy, options ...kube.WaitOption) (kube.Waiter, error) {
	waiter, err := h.Client.GetWaiterWithOptions(strategy, options...)
	if err != nil {
		return nil, err
	}
	return &hookWaiter{waiter, h}, nil
}

// hookWaiter does not wait for the deletion of a continuing or finished hook, nor for the end of a
// finished one.
type hookWaiter struct {
	kube.Waiter
	of *hookClient
}

// WaitForDelete implements kube.Waiter.
func (w *hookWaiter) WaitForDelete(resources kube.ResourceList, timeout time.Duration) error {
	fresh, err := w.of.without(resources, runGoesOn, runIsOver)
	if err != nil || len(fresh) == 0 && len(resources) > 0 {
		return err
	}
	return w.Waiter.WaitForDelete(fresh, timeout)
}

// WatchUntilReady implements kube.Waiter.
func (w *hookWaiter) WatchUntilReady(resources kube.ResourceList, timeout time.Duration) error {
	awaited, err := w.of.without(resources, runIsOver)
	if err == nil && (len(awaited) > 0 || len(resources) == 0) {
		if err = w.Waiter.WatchUntilReady(awaited, timeout); err != nil {
			err = w.of.acting.explainHooks(w.of.ctx, awaited, err)
		}
	}
	for _, info := range resources {
		w.of.runs[keyOf(info)] = runEnded
	}
	w.of.unstored = w.of.unstored || len(resources) > 0
	return err
}

// storeRuns stores the ended hooks for the next attempt, in case this one is interrupted.
func (h *hookClient) storeRuns() {
	if h.unstored && h.store != nil {
		h.store()
	}
	h.unstored = false
}

// without returns the resources except for hooks with these actions.
func (h *hookClient) without(resources kube.ResourceList, runs ...hookRun) (kube.ResourceList, error) {
	var rest kube.ResourceList
	for _, info := range resources {
		is, err := h.run(info)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(runs, is) {
			rest = append(rest, info)
		}
	}
	return rest, nil
}

func keyOf(info *resource.Info) hookKey {
	return hookKey{info.Mapping.GroupVersionKind.Kind, info.Namespace, info.Name}
}

// run returns the action for a hook. The first call for a hook decides it; WatchUntilReady changes
// it.
func (h *hookClient) run(info *resource.Info) (hookRun, error) {
	if kind := info.Mapping.GroupVersionKind.Kind; len(h.earlier) == 0 || !ofHook(info) || kind != "Job" && kind != "Pod" {
		return runFresh, nil // Helm waits for no other kind, so they have no end
	}
	if is, known := h.runs[keyOf(info)]; known {
		return is, nil
	}
	is, err := h.earlierRun(info)
	if err != nil {
		return runFresh, err
	}
	h.runs[keyOf(info)] = is
	return is, nil
}

// earlierRun returns the action for a hook by its phase in the earlier attempts and by its object.
func (h *hookClient) earlierRun(info *resource.Info) (hookRun, error) {
	phase := h.earlierPhase(info)
	if phase == "" || phase == helm.HookPhaseFailed {
		return runFresh, nil
	}
	found, err := clientOf(h.acting, info).Get(h.ctx, info.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && phase == helm.HookPhaseSucceeded:
		return runIsOver, nil
	case apierrors.IsNotFound(err):
		return runFresh, nil
	case err != nil:
		return runFresh, fmt.Errorf("looking whether hook %s of an attempt that was cut off runs still: %w", info.ObjectName(), err)
	case !belongsToAny([]ID{h.owner.release}, found) || found.GetDeletionTimestamp() != nil,
		readiness.Of(found).State == readiness.Failed:
		return runFresh, nil
	}
	return runGoesOn, nil
}

// earlierPhase returns the phase of the hook in its newest attempt.
func (h *hookClient) earlierPhase(info *resource.Info) helm.HookPhase {
	for _, hook := range h.earlier {
		if hook.Name == info.Name && hook.LastRun.Phase != "" && manifestOf(hook.Manifest, info) {
			return hook.LastRun.Phase
		}
	}
	return ""
}

// manifestOf reports whether a manifest is equal to the manifest of a resource.
func manifestOf(manifest string, info *resource.Info) bool {
	objects, err := parse([]byte(manifest))
	object, ok := info.Object.(*unstructured.Unstructured)
	if err != nil || len(objects) != 1 || !ok {
		return false
	}
	written, built := objects[0], object.DeepCopy()
	if written.GetNamespace() == "" {
		written.SetNamespace(info.Namespace)
	}
	built.SetNamespace(info.Namespace)
	a, err := json.Marshal(written.Object)
	if err != nil {
		return false
	}
	b, err := json.Marshal(built.Object)
	return err == nil && bytes.Equal(a, b)
}
