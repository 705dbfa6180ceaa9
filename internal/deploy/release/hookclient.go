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

// hookClient has Helm go on with the hooks of an attempt that ended with its deployer: Helm deletes
// the Job of a hook and starts it again, so that a migration of a database would run twice.
type hookClient struct {
	*kube.Client
	ctx     context.Context //nolint:containedctx // Helm's interface has none
	acting  *Cluster
	release ID
	// earlier are the hooks as the attempts that were cut off left them, the newest attempt first.
	earlier []*helm.Hook
	// runs are the hooks of this attempt.
	runs map[hookKey]hookRun
	// store stores how far the hooks are; nil before the revision is stored. unstored says that a
	// hook has ended since.
	store    func()
	unstored bool
}

type hookKey struct{ kind, namespace, name string }

// hookRun is what becomes of a hook in this attempt.
type hookRun int

const (
	// runFresh: Helm creates it.
	runFresh hookRun = iota
	// runGoesOn: its object of the earlier attempt runs, or has succeeded.
	runGoesOn
	// runIsOver: it has succeeded in the earlier attempt, and its object is gone.
	runIsOver
	// runEnded: it has run in this attempt.
	runEnded
)

// attempts are the newest revisions that were cut off and deployed the same, the newest first.
func (p past) attempts(r Request) (revisions []*helm.Release) {
	for _, revision := range p.cutOff {
		if revision.Chart == nil || revision.Chart.Metadata == nil {
			return revisions
		}
		was := revision.Chart.Metadata.Annotations
		if was[annotationDeploymentID] != r.DeploymentID || was[annotationSyncGeneration] != strconv.FormatInt(r.Options.ForceSyncGeneration, 10) {
			return revisions
		}
		revisions = append(revisions, revision)
	}
	return revisions
}

// resume returns the hooks of the attempts that were cut off.
func (p past) resume(r Request) (hooks []*helm.Hook) {
	for _, revision := range p.attempts(r) {
		hooks = append(hooks, revision.Hooks...)
	}
	return hooks
}

// Delete implements kube.Interface.
func (h *hookClient) Delete(resources kube.ResourceList, policy metav1.DeletionPropagation) (*kube.Result, []error) {
	fresh, err := h.without(resources, runGoesOn, runIsOver)
	if err != nil {
		return nil, []error{err}
	}
	if len(fresh) == 0 && len(resources) > 0 {
		return &kube.Result{}, nil
	}
	// A hook that goes when it has succeeded leaves nothing that says so.
	h.storeRuns()
	return h.Client.Delete(fresh, policy)
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

// hookWaiter waits for no hook to be deleted that goes on, and for none to end that is over.
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
		err = w.Waiter.WatchUntilReady(awaited, timeout)
	}
	for _, info := range resources {
		w.of.runs[keyOf(info)] = runEnded
	}
	w.of.unstored = w.of.unstored || len(resources) > 0
	return err
}

// storeRuns stores which hooks have ended, for the next attempt if this one is cut off.
func (h *hookClient) storeRuns() {
	if h.unstored && h.store != nil {
		h.store()
	}
	h.unstored = false
}

// without returns the resources but for hooks of which that becomes.
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

// run returns what becomes of a hook, and decides that when the hook is seen for the first time.
func (h *hookClient) run(info *resource.Info) (hookRun, error) {
	if kind := info.Mapping.GroupVersionKind.Kind; len(h.earlier) == 0 || !ofHook(info) || kind != "Job" && kind != "Pod" {
		return runFresh, nil // Helm waits for no other kind, so that they have no end
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

// earlierRun returns what the earlier attempt leaves to do of a hook.
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
	case !Belongs(Summary{Name: h.release.Name, Namespace: h.release.Namespace}, found) || found.GetDeletionTimestamp() != nil,
		readiness.Of(found).State == readiness.Failed:
		return runFresh, nil
	}
	return runGoesOn, nil
}

// earlierPhase is how far the same hook was in the newest attempt that had begun it.
func (h *hookClient) earlierPhase(info *resource.Info) helm.HookPhase {
	for _, hook := range h.earlier {
		if hook.Name == info.Name && hook.LastRun.Phase != "" && manifestOf(hook.Manifest, info) {
			return hook.LastRun.Phase
		}
	}
	return ""
}

// manifestOf says whether a manifest is the one of a resource.
func manifestOf(manifest string, info *resource.Info) bool {
	objects, err := parse([]byte(manifest))
	is, ok := info.Object.(*unstructured.Unstructured)
	if err != nil || len(objects) != 1 || !ok {
		return false
	}
	was, is := objects[0], is.DeepCopy()
	if was.GetNamespace() == "" {
		was.SetNamespace(info.Namespace)
	}
	is.SetNamespace(info.Namespace)
	a, err := json.Marshal(was.Object)
	if err != nil {
		return false
	}
	b, err := json.Marshal(is.Object)
	return err == nil && bytes.Equal(a, b)
}
