package release

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/kube"
	helm "helm.sh/helm/v4/pkg/release/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/muster-fleet/muster/internal/deploy/applied"
)

// ErrHookRuns reports an unfinished hook of an uninstall.
var ErrHookRuns = errors.New("a hook that runs before the release is removed has not ended yet")

// uninstallHooks is the progress of the hooks of an uninstall. Helm starts with the first hook in
// each attempt, and deletes the Job of the previous attempt. A hook longer than an attempt would
// therefore never end.
type uninstallHooks struct {
	// again is set if an earlier attempt has begun to run them.
	again bool
	// begun are the hooks begun in this attempt.
	begun map[string]bool
	// runs names the unfinished hook at the end of this attempt, and cause its reason; empty if there
	// is none.
	runs, cause string
}

// hooksToDelete returns the hooks that Helm may delete. It keeps running hooks, and hooks of an
// earlier attempt without a failure.
func (r *uninstallClient) hooksToDelete(hooks kube.ResourceList) (kube.ResourceList, error) {
	if r.hooks.runs != "" { // succeeded hooks must not run again in the next attempt
		return nil, nil
	}
	var going kube.ResourceList
	for _, info := range hooks {
		if r.hooks.again && !r.hooks.begun[info.ObjectName()] {
			found, err := clientOf(r.acting, info).Get(r.ctx, info.Name, metav1.GetOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				return nil, fmt.Errorf("looking whether hook %s has run: %w", info.ObjectName(), err)
			}
			if err == nil && isRun(found) && Belongs(Summary{Name: r.release.Name, Namespace: r.release.Namespace}, found) && !hasFailed(found) {
				continue
			}
		}
		going = append(going, info)
	}
	return going, nil
}

// Create implements kube.Interface. An uninstall creates only hooks.
func (r *uninstallClient) Create(resources kube.ResourceList, options ...kube.ClientCreateOption) (*kube.Result, error) {
	if r.hooks.begun == nil {
		r.hooks.begun = map[string]bool{}
	}
	for _, info := range resources {
		r.hooks.begun[info.ObjectName()] = true
	}
	return r.Client.Create(resources, options...)
}

// GetWaiterWithOptions implements kube.InterfaceWaitOptions.
func (r *uninstallClient) GetWaiterWithOptions(strategy kube.WaitStrategy, options ...kube.WaitOption) (kube.Waiter, error) {
	waiter, err := r.Client.GetWaiterWithOptions(strategy, options...)
	if err != nil {
		return nil, err
	}
	return &uninstallWaiter{waiter, r}, nil
}

// uninstallWaiter notes the hook that has not ended in time.
type uninstallWaiter struct {
	kube.Waiter
	of *uninstallClient
}

// WatchUntilReady implements kube.Waiter.
func (w *uninstallWaiter) WatchUntilReady(resources kube.ResourceList, timeout time.Duration) error {
	err := w.Waiter.WatchUntilReady(resources, timeout)
	if err == nil {
		return nil
	}
	for _, info := range resources {
		if found, lookErr := clientOf(w.of.acting, info).Get(w.of.ctx, info.Name, metav1.GetOptions{}); lookErr == nil && !hasEnded(found) {
			w.of.hooks.runs, w.of.hooks.cause = objectName(info), w.of.acting.hookCause(w.of.ctx, info)
		}
	}
	if w.of.hooks.runs != "" { // the caller names the cause
		return err
	}
	return w.of.acting.explainHooks(w.of.ctx, resources, err)
}

func objectName(info *resource.Info) string {
	return fmt.Sprintf("%s %s/%s", info.Mapping.GroupVersionKind.Kind, info.Namespace, info.Name)
}

// isDeleteHook reports whether an object is a hook for the removal of its release.
func isDeleteHook(object *unstructured.Unstructured) bool {
	return slices.ContainsFunc(strings.Split(object.GetAnnotations()[helm.HookAnnotation], ","), func(event string) bool {
		event = strings.ToLower(strings.TrimSpace(event))
		return event == string(helm.HookPreDelete) || event == string(helm.HookPostDelete)
	})
}

// isRun reports whether Helm waits for hooks of the kind of an object.
func isRun(object *unstructured.Unstructured) bool {
	return object.GetKind() == "Job" || object.GetKind() == "Pod"
}

// hasEnded reports whether a hook has nothing to wait for.
func hasEnded(object *unstructured.Unstructured) bool {
	return !isRun(object) || hasFailed(object) || hasSucceeded(object)
}

func hasSucceeded(object *unstructured.Unstructured) bool {
	return isPhase(object, "Succeeded") || applied.EndOf(object) == applied.JobComplete
}

func hasFailed(object *unstructured.Unstructured) bool {
	return isPhase(object, "Failed") || applied.EndOf(object) == applied.JobFailed
}

func isPhase(object *unstructured.Unstructured, phase string) bool {
	is, _, _ := unstructured.NestedString(object.Object, "status", "phase") // a value other than text is no phase
	return object.GetKind() == "Pod" && is == phase
}
