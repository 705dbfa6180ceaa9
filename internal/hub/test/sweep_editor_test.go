package hub_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/api/crds"
)

// editor is a user with all rights on the kinds of the hub in one workspace, other than to approve
// and to restore. The charts define no smaller role for tenants.
type editor struct {
	fixture
	user    client.Client
	hostile hostile
	keys    []string
	kinds   []attackedKind
	refused sync.Map // the last refusal of each kind
}

// attackedKind is a namespaced kind that the hub serves.
type attackedKind struct {
	schema.GroupVersionKind
	schema *apiextensionsv1.JSONSchemaProps
}

// sweeping returns the editor of the workspace, who attacks the objects with these names.
func (f fixture) sweeping(names ...string) *editor {
	f.t.Helper()
	var list apiextensionsv1.CustomResourceDefinitionList
	f.check(f.List(context.Background(), &list))
	e := &editor{fixture: f, hostile: newHostile(names...), keys: hubKeys(f.t)}
	verbs := []string{"get", "list", "watch", "create", "update", "patch", "delete"}
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps", "secrets", "serviceaccounts"}, Verbs: verbs},
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: verbs},
	}
	for _, kind := range []string{"ConfigMap", "Secret", "ServiceAccount"} {
		e.kinds = append(e.kinds, attackedKind{schema.GroupVersionKind{Version: "v1", Kind: kind}, nil})
	}
	e.kinds = append(e.kinds, attackedKind{schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}, nil})
	for _, d := range list.Items {
		if _, err := crds.FS.Open(d.Spec.Group + "_" + d.Spec.Names.Plural + ".yaml"); err != nil ||
			d.Spec.Scope != apiextensionsv1.NamespaceScoped {
			continue
		}
		for _, version := range d.Spec.Versions {
			if version.Served && version.Storage {
				e.kinds = append(e.kinds, attackedKind{
					schema.GroupVersionKind{Group: d.Spec.Group, Version: version.Name, Kind: d.Spec.Names.Kind}, version.Schema.OpenAPIV3Schema,
				})
			}
		}
		if !slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.APIGroups, d.Spec.Group) }) {
			rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{d.Spec.Group}, Resources: []string{"*"}, Verbs: verbs})
		}
	}
	e.user, _ = f.userWith(f.workspace, "editor", rules...)
	f.eventually("the editor has the rights", func() error {
		lease := &unstructured.UnstructuredList{}
		lease.SetGroupVersionKind(schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "LeaseList"})
		return e.user.List(context.Background(), lease, client.InNamespace(f.workspace))
	})
	return e
}

func (e *editor) object(kind attackedKind, name string, content map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	for field, value := range content {
		if field != "metadata" && field != "kind" && field != "apiVersion" {
			o.Object[field] = value
		}
	}
	o.SetGroupVersionKind(kind.GroupVersionKind)
	o.SetNamespace(e.workspace)
	o.SetName(name)
	return o
}

// write calls the API server, and takes out what it refuses until it does not refuse any more. An
// object of which too little is left is not written.
func (e *editor) write(o *unstructured.Unstructured, call func(*unstructured.Unstructured) error) bool {
	for range 40 {
		err := call(o)
		if err == nil {
			return true
		}
		if !apierrors.IsInvalid(err) || !takeOut(o, err) {
			e.refused.Store(o.GetKind(), err)
			return false
		}
	}
	return false
}

// takeOut takes what an error names out of an object, and the parent of what it misses.
func takeOut(o *unstructured.Unstructured, err error) (changed bool) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	for _, cause := range status.Status().Details.Causes {
		path := cause.Field
		if cause.Type == metav1.CauseTypeFieldValueRequired {
			path = path[:max(0, strings.LastIndexAny(path, ".["))]
		}
		changed = without(o.Object, path) || changed
	}
	return changed
}

// create creates an object, and then writes the same hostile values into its status.
func (e *editor) create(kind attackedKind, name string, content map[string]any, edit ...func(client.Object)) bool {
	content = runtime.DeepCopyJSON(content) // parallel jobs share it, and write takes fields out
	o := e.object(kind, name, content)
	for _, one := range edit {
		one(o)
	}
	status, hasStatus := content["status"]
	created := e.write(o, func(o *unstructured.Unstructured) error { return e.user.Create(context.Background(), o) })
	if created && hasStatus {
		e.write(o, func(o *unstructured.Unstructured) error {
			o.Object["status"] = status
			return e.user.Status().Patch(context.Background(), o.DeepCopy(), client.Merge)
		})
	}
	return created
}

// mark creates an object with some keys, or one for each key if they are refused together.
func (e *editor) mark(kind attackedKind, name string, base map[string]any, set marks) bool {
	if e.create(kind, name, base, set.on) {
		return true
	}
	stored := false
	for key, value := range set {
		i := slices.Index(e.keys, key)
		stored = e.create(kind, fmt.Sprintf("%s-%d", name, i), base, func(o client.Object) { marks{key: value}.on(o) }) || stored
	}
	return stored
}

// attack creates objects of a kind: with each value in all fields at once, with each field alone,
// and with all keys. It returns how many the API server has stored.
func (e *editor) attack(kind attackedKind) int {
	var jobs []func() bool
	add := func(content map[string]any) {
		name := fmt.Sprintf("%s-%d", strings.ToLower(kind.Kind), len(jobs))
		jobs = append(jobs, func() bool { return e.create(kind, name, content) })
	}
	base := map[string]any{}
	if kind.schema != nil {
		for variant := range e.hostile.texts {
			add(e.hostile.object(kind.schema, variant))
		}
		spec, found := kind.schema.Properties["spec"]
		place := 0
		for field := range spec.Properties {
			add(map[string]any{"spec": e.hostile.only(&spec, field, place)})
			place++
		}
		if found {
			base["spec"] = e.hostile.only(&spec, "", 0)
		}
	}
	for _, set := range e.marked(len(e.kinds)) {
		name := fmt.Sprintf("%s-%d", strings.ToLower(kind.Kind), len(jobs))
		jobs = append(jobs, func() bool { return e.mark(kind, name, base, set) })
	}
	var stored atomic.Int64
	inParallel(len(jobs), func(i int) {
		if jobs[i]() {
			stored.Add(1)
		}
	})
	return int(stored.Load())
}
