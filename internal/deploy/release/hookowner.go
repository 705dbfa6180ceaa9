package release

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"helm.sh/helm/v4/pkg/kube"
	helm "helm.sh/helm/v4/pkg/release/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/muster-fleet/muster/internal/deploy/applied"
	"github.com/muster-fleet/muster/internal/deploy/removal"
)

// hookOwner deletes the objects of hooks, to make way for their next runs or by their delete
// policies. It also deletes the objects of a rolled back installation. Helm would delete any object
// with the name of a hook.
type hookOwner struct {
	release ID
	// releases are the releases whose marks an object may have, including this one.
	releases []ID
	// unmarked are the hooks from revisions of Helm or another agent. Their objects have no marks.
	unmarked []*helm.Hook
	// takes allows objects of other owners, unless they hold data.
	takes bool
}

// ranUnmarked returns the hooks from revisions of Helm or another agent.
func ranUnmarked(history []*helm.Release) (hooks []*helm.Hook) {
	for _, revision := range history {
		if revision.Chart != nil && revision.Chart.Metadata != nil && revision.Chart.Metadata.Annotations[annotationDeploymentID] != "" {
			continue
		}
		for _, hook := range revision.Hooks {
			if hook.LastRun.Phase != "" {
				hooks = append(hooks, hook)
			}
		}
	}
	return hooks
}

// delete deletes the objects of the release. It returns Helm's error of a conflict for others.
func (o hookOwner) delete(ctx context.Context, acting *Cluster, resources kube.ResourceList) (*kube.Result, []error) {
	result := &kube.Result{}
	var failures []error
	for _, info := range resources {
		if info.Name == "" { // the API server has chosen the name
			continue
		}
		objects := clientOf(acting, info)
		found, err := objects.Get(ctx, info.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			failures = append(failures, fmt.Errorf("looking whose %s is before it is deleted: %w", info.ObjectName(), err))
			continue
		}
		if !o.owns(info, found) {
			failures = append(failures, conflict(o.release, info.Mapping, found))
			continue
		}
		cause := removal.LeftRelease
		if ofHook(info) {
			cause = removal.HookRan
		}
		switch err := removal.Delete(ctx, removal.Of(objects), found, cause); {
		case err == nil:
			result.Deleted = append(result.Deleted, info)
		case !apierrors.IsNotFound(err):
			failures = append(failures, fmt.Errorf("deleting %s: %w", info.ObjectName(), err))
		}
	}
	return result, failures
}

// owns reports whether an object may be deleted. It belongs to one of the releases, or is an
// earlier run of a hook without marks. Otherwise takes must allow it.
func (o hookOwner) owns(info *resource.Info, found *unstructured.Unstructured) bool {
	if o.takes && !applied.HoldsData(info.Mapping.GroupVersionKind.GroupKind()) {
		return true
	}
	if NameOf(found) == "" {
		return isHook(found) && slices.ContainsFunc(o.unmarked, func(hook *helm.Hook) bool { return o.isOf(hook, info) })
	}
	return belongsToAny(o.releases, found)
}

// isOf reports whether a hook of an earlier revision has the kind and the name of a hook.
func (o hookOwner) isOf(hook *helm.Hook, info *resource.Info) bool {
	objects, err := parse([]byte(hook.Manifest))
	if err != nil || len(objects) != 1 {
		return false
	}
	was := objects[0]
	return was.GroupVersionKind().GroupKind() == info.Mapping.GroupVersionKind.GroupKind() && was.GetName() == info.Name &&
		(info.Namespace == "" || cmp.Or(was.GetNamespace(), o.release.Namespace) == info.Namespace)
}

// conflict returns Helm's error for an object of another owner.
func conflict(release ID, mapping *meta.RESTMapping, found *unstructured.Unstructured) error {
	namespace := ""
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		namespace = found.GetNamespace()
	}
	is, why := found.GetAnnotations(), ""
	for _, mark := range []struct{ key, value string }{{helmReleaseName, release.Name}, {helmReleaseNamespace, release.Namespace}} {
		if value, there := is[mark.key]; !there {
			why += fmt.Sprintf("; missing key %q: must be set to %q", mark.key, mark.value)
		} else if value != mark.value {
			why += fmt.Sprintf("; key %q must equal %q: current value is %q", mark.key, mark.value, value)
		}
	}
	return fmt.Errorf("%s %q in namespace %q exists and cannot be imported into the current release: invalid ownership metadata%s",
		found.GetKind(), found.GetName(), namespace, why)
}
