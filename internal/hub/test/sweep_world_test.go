package hub_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/testkube"
)

// world is all objects that a test looks at, by kind, namespace and name.
type world map[string]map[string]any

// resources returns the kinds that the API server serves and that a client may list.
func (f fixture) resources() map[schema.GroupVersionKind]metav1.APIResource {
	f.t.Helper()
	found, err := discovery.NewDiscoveryClientForConfigOrDie(f.cluster.Config).ServerPreferredResources()
	f.check(err)
	kinds := map[schema.GroupVersionKind]metav1.APIResource{}
	for _, list := range found {
		group, err := schema.ParseGroupVersion(list.GroupVersion)
		f.check(err)
		for _, resource := range list.APIResources {
			if slices.Contains(resource.Verbs, "list") {
				kinds[group.WithKind(resource.Kind)] = resource
			}
		}
	}
	return kinds
}

// objects returns everything but Leases and Events.
func (f fixture) objects(kinds map[schema.GroupVersionKind]metav1.APIResource) []unstructured.Unstructured {
	f.t.Helper()
	var all []unstructured.Unstructured
	for kind := range kinds {
		if kind.Kind == "Lease" || kind.Kind == "Event" || kind.Kind == "ComponentStatus" {
			continue
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := f.List(context.Background(), list); err != nil && !apierrors.IsNotFound(err) {
			f.t.Fatalf("listing %s: %v", kind, err)
		}
		all = append(all, list.Items...)
	}
	return all
}

// split returns the objects outside of some workspaces and of their member namespaces, without
// those with one of the ignored names in their own, and the versions of all that is not ignored.
func split(all []unstructured.Unstructured, ignored []string, workspaces ...string) (outside world, versions map[string]string) {
	attacked := map[string]bool{}
	for _, name := range workspaces {
		attacked[name] = true
	}
	for _, o := range all {
		if o.GetKind() == "Namespace" && attacked[o.GetAnnotations()[fleet.AnnotationClusterNamespace]] {
			attacked[o.GetName()] = true
		}
	}
	outside, versions = world{}, map[string]string{}
	for _, o := range all {
		key := o.GetKind() + " " + client.ObjectKeyFromObject(&o).String()
		inside := attacked[o.GetNamespace()] || o.GetKind() == "Namespace" && attacked[o.GetName()]
		if !inside && slices.ContainsFunc(ignored, func(name string) bool { return strings.Contains(key, name) }) {
			continue
		}
		versions[key] = o.GetResourceVersion()
		if inside {
			continue
		}
		o.SetManagedFields(nil)
		o.SetResourceVersion("")
		outside[key] = o.Object
	}
	return outside, versions
}

// former returns the names that the Clusters and MemberClusters of earlier tests have in their
// objects, and the names of their workspaces. Their agents send no heartbeats, so these objects
// change by themselves in the minutes of a sweep.
func (f fixture) former(member string, workspaces ...string) (names []string) {
	f.t.Helper()
	var members clusterv1beta1.MemberClusterList
	f.check(f.List(context.Background(), &members))
	for _, m := range members.Items {
		if m.Name != member {
			names = append(names, m.Name)
		}
	}
	var clusters fleet.ClusterList
	f.check(f.List(context.Background(), &clusters))
	for _, c := range clusters.Items {
		if !slices.Contains(workspaces, c.Namespace) {
			names = append(names, c.Namespace)
		}
	}
	return names
}

// untilAtRest waits until nothing has changed for some time, other than what has an ignored name,
// and returns what is outside of the workspaces.
func (f fixture) untilAtRest(kinds map[schema.GroupVersionKind]metav1.APIResource, ignored []string, workspaces ...string) (outside world) {
	f.t.Helper()
	const quiet = 3 * time.Second
	var before map[string]string
	var since time.Time
	testkube.Eventually(f.t, "the hub is at rest", func() error {
		var now map[string]string
		outside, now = split(f.objects(kinds), ignored, workspaces...)
		if before == nil || !maps.Equal(before, now) {
			var moved []string
			for key, version := range now {
				if before[key] != version {
					moved = append(moved, key)
				}
			}
			before, since = now, time.Now()
			return fmt.Errorf("%d objects changed, such as %v", len(moved), moved[:min(12, len(moved))])
		}
		if left := quiet - time.Since(since); left > 0 {
			return fmt.Errorf("nothing has changed, for another %s", left)
		}
		return nil
	})
	return outside
}

// differences returns what changed outside. A tenant's Bundles make Contents, its Clusters are in
// the inventory, its requests of earlier agents have answers, and grants make entries of the audit.
func (w world) differences(now world, workspaces ...string) []string {
	var all []string
	for key, was := range w {
		if is, found := now[key]; !found {
			all = append(all, key+" is gone")
		} else if diff := cmp.Diff(was, is); diff != "" && strings.HasPrefix(key, "Secret ") {
			all = append(all, key+" was changed")
		} else if diff != "" {
			all = append(all, key+" was changed: "+diff)
		}
	}
	for key, is := range now {
		if _, found := w[key]; found || strings.HasPrefix(key, "Content ") {
			continue
		}
		annotations, _, _ := unstructured.NestedStringMap(is, "metadata", "annotations")
		if strings.HasPrefix(key, "ClusterProfile ") && slices.Contains(workspaces, annotations[fleet.AnnotationClusterNamespace]) {
			continue
		}
		workspace, _, _ := strings.Cut(annotations["muster/registration"], "/")
		if slices.Contains(workspaces, workspace) {
			continue
		}
		spec, _, _ := unstructured.NestedMap(is, "spec")
		if strings.HasPrefix(key, "AuditEntry ") && slices.ContainsFunc(workspaces, func(name string) bool {
			return strings.Contains(fmt.Sprint(spec), name)
		}) {
			continue
		}
		all = append(all, fmt.Sprintf("%s was created, with annotations %v", key, annotations))
	}
	slices.Sort(all)
	return all
}
