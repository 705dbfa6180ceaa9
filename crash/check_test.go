package crash

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// check walks what a run has made on both control planes and reports what must not be, whatever the
// undisturbed run looks like.
func check(before known, planes []plane) (wrong []string) {
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	for _, p := range planes {
		w := walk{plane: p, known: before, byName: map[string]unstructured.Unstructured{}, uids: map[types.UID]bool{}, say: say}
		for _, o := range p.objects {
			w.byName[o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName()] = o
			w.uids[o.GetUID()] = true
		}
		for _, o := range p.objects {
			w.owners(o)
			w.rights(o)
		}
		w.once("grants to Cluster", "ClusterRegistration", func(o unstructured.Unstructured) string {
			if state, _, _ := unstructured.NestedString(o.Object, "status", "state"); state != "Granted" {
				return ""
			}
			name, _, _ := unstructured.NestedString(o.Object, "status", "clusterName")
			return o.GetNamespace() + "/" + name
		})
		w.once("Clusters with the client ID", "Cluster", func(o unstructured.Unstructured) string { return field(o, "spec", "clientID") })
		w.once("members in the namespace", "Cluster", func(o unstructured.Unstructured) string { return field(o, "status", "namespace") })
		w.once("deployed revisions of release", "Secret", func(o unstructured.Unstructured) string {
			if labels := o.GetLabels(); labels["owner"] == "helm" && labels["status"] == "deployed" {
				return o.GetNamespace() + "/" + labels["name"]
			}
			return ""
		})
	}
	return wrong
}

func field(o unstructured.Unstructured, path ...string) string {
	value, _, _ := unstructured.NestedString(o.Object, path...)
	return value
}

type walk struct {
	plane
	known  known
	byName map[string]unstructured.Unstructured
	uids   map[types.UID]bool
	say    func(format string, args ...any)
}

func describe(o unstructured.Unstructured) string {
	return fmt.Sprintf("%s %s/%s", o.GetKind(), o.GetNamespace(), o.GetName())
}

// owners says that an object has an owner that is gone, or two that control it.
func (w walk) owners(o unstructured.Unstructured) {
	controllers := 0
	for _, owner := range o.GetOwnerReferences() {
		if !w.uids[owner.UID] && !w.known.uids[owner.UID] {
			w.say("%s: %s is an orphan of %s %s", w.name, describe(o), owner.Kind, owner.Name)
		}
		if owner.Controller != nil && *owner.Controller {
			controllers++
		}
	}
	if controllers > 1 {
		w.say("%s: %s has %d controllers", w.name, describe(o), controllers)
	}
}

// rights reports bindings of missing roles, bindings to missing accounts, and tokens of missing
// accounts. It looks only for names with the ID of the run. Objects from before the run, such as
// the roles of the chart, have other names.
func (w walk) rights(o unstructured.Unstructured) {
	missing := func(kind, namespace, name string) {
		if _, there := w.byName[kind+" "+namespace+"/"+name]; !there && (runID.MatchString(name) || runID.MatchString(namespace)) {
			w.say("%s: %s is left over: there is no %s %s/%s", w.name, describe(o), kind, namespace, name)
		}
	}
	switch o.GetKind() {
	case "RoleBinding", "ClusterRoleBinding":
		if kind := field(o, "roleRef", "kind"); kind == "Role" {
			missing(kind, o.GetNamespace(), field(o, "roleRef", "name"))
		}
		subjects, _, _ := unstructured.NestedSlice(o.Object, "subjects")
		for _, subject := range subjects {
			if s, ok := subject.(map[string]any); ok && s["kind"] == "ServiceAccount" {
				missing("ServiceAccount", fmt.Sprint(s["namespace"]), fmt.Sprint(s["name"]))
			}
		}
	case "Secret":
		if account := o.GetAnnotations()["kubernetes.io/service-account.name"]; account != "" {
			missing("ServiceAccount", o.GetNamespace(), account)
		}
	case "Namespace":
		if strings.HasPrefix(o.GetName(), "cluster-") || strings.HasPrefix(o.GetName(), "fleet-member-") {
			w.record(o)
		}
	}
}

// record says that a member namespace has no record, which its report would have the name of.
func (w walk) record(namespace unstructured.Unstructured) {
	for _, o := range w.objects {
		switch {
		case o.GetKind() == "Cluster" && field(o, "status", "namespace") == namespace.GetName(),
			o.GetKind() == "MemberCluster" && strings.HasSuffix(namespace.GetName(), "-"+o.GetName()):
			return
		}
	}
	w.say("%s: member namespace %s has no record", w.name, namespace.GetName())
}

// once says that several objects of a kind share what only one may have.
func (w walk) once(what, kind string, of func(unstructured.Unstructured) string) {
	counts := map[string]int{}
	for _, o := range w.objects {
		if shared := of(o); o.GetKind() == kind && shared != "" {
			counts[shared]++
		}
	}
	for shared, count := range counts {
		if count > 1 {
			w.say("%s: there are %d %s %s", w.name, count, what, shared)
		}
	}
}
