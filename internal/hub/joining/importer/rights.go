package importer

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/muster-fleet/muster/internal/naming"
)

// reviewers is the number of concurrent SelfSubjectAccessReviews.
const reviewers = 8

// right is the subject of a SelfSubjectAccessReview.
type right = authorizationv1.SelfSubjectAccessReviewSpec

// missingRights lists the rights missing in the kubeconfig for the installation. An administrator's
// kubeconfig costs two reviews.
func (d *downstream) missingRights(ctx context.Context, objects []*unstructured.Unstructured) ([]string, error) {
	missing, err := d.refused(ctx, everything)
	if err != nil || len(missing) == 0 {
		return nil, err
	}
	needed, err := d.neededRights(objects)
	if err != nil {
		return nil, err
	}
	return d.refused(ctx, needed)
}

var everything = []right{
	{ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "*", Group: "*", Resource: "*"}},
	{NonResourceAttributes: &authorizationv1.NonResourceAttributes{Verb: "*", Path: "*"}},
}

// refused returns, in order, the rights denied to the user of the kubeconfig.
func (d *downstream) refused(ctx context.Context, rights []right) ([]string, error) {
	var mu sync.Mutex
	var group sync.WaitGroup
	var failed error
	var missing []string
	limit := make(chan struct{}, reviewers)
	for _, wanted := range rights {
		limit <- struct{}{}
		group.Go(func() {
			defer func() { <-limit }()
			review := &authorizationv1.SelfSubjectAccessReview{Spec: wanted}
			err := d.Create(ctx, review)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed = err
			} else if !review.Status.Allowed {
				missing = append(missing, describeRight(wanted))
			}
		})
	}
	group.Wait()
	slices.Sort(missing)
	return slices.Compact(missing), failed
}

// neededRights returns the rights to write the objects, and the rights granted by the Roles among
// them. A user can grant only rights of their own.
func (d *downstream) neededRights(objects []*unstructured.Unstructured) ([]right, error) {
	needed := []right{
		on("get", "", "namespaces", "", metav1.NamespaceSystem),
		on("get", "", "secrets", objects[0].GetName(), naming.AgentSecret),
	}
	for _, object := range objects {
		gvk := object.GroupVersionKind()
		mapping, err := kinds.RESTMapping(gvk.GroupKind(), gvk.Version)
		if err != nil {
			return nil, fmt.Errorf("the agent's chart renders a kind that the hub does not know: %w", err)
		}
		for _, verb := range []string{"create", "patch"} {
			needed = append(needed, on(verb, gvk.Group, mapping.Resource.Resource, object.GetNamespace(), ""))
		}
		if gvk.Group != rbacv1.GroupName || strings.HasSuffix(gvk.Kind, "Binding") {
			continue
		}
		var role rbacv1.ClusterRole // a Role has the same rules
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role); err != nil {
			return nil, fmt.Errorf("reading the rules of %s %s: %w", gvk.Kind, object.GetName(), err)
		}
		for _, rule := range role.Rules {
			needed = append(needed, grantedBy(rule, object.GetNamespace())...)
		}
	}
	return needed, nil
}

func on(verb, group, resource, namespace, name string) right {
	return right{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Group: group, Resource: resource, Namespace: namespace, Name: name},
	}
}

func grantedBy(rule rbacv1.PolicyRule, namespace string) []right {
	var out []right
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	for _, verb := range rule.Verbs {
		for _, path := range rule.NonResourceURLs {
			out = append(out, right{NonResourceAttributes: &authorizationv1.NonResourceAttributes{Verb: verb, Path: path}})
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, name := range names {
					out = append(out, on(verb, group, resource, namespace, name))
				}
			}
		}
	}
	return out
}

func describeRight(r right) string {
	if path := r.NonResourceAttributes; path != nil {
		return path.Verb + " " + path.Path
	}
	a := r.ResourceAttributes
	text := a.Verb + " " + a.Resource
	if a.Group != "" {
		text += "." + a.Group
	}
	if a.Name != "" {
		text += " " + a.Name
	}
	if a.Namespace != "" {
		text += " in " + a.Namespace
	}
	return text
}
