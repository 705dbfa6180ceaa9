package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/release/common"
	helm "helm.sh/helm/v4/pkg/release/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// importedVersion is the version of the chart of an agent that Rancher Fleet's hub
// installed without a release.
const importedVersion = "0.0.0-imported"

// Rancher Fleet installs an agent in two ways: by a chart, or by the hub with the kubeconfig of the
// member. An imported agent has no release. Helm refuses to install another one over its objects,
// and has no revision to roll back to. If the marks of Rancher Fleet prove its ownership of the
// objects, they become revision 1.

// importedObjects names the objects applied by Rancher Fleet's hub for its agent. It leaves out
// namespaces, Secrets and the account default, because no release may delete them.
func importedObjects() (objects []*unstructured.Unstructured) {
	role := naming.SystemNamespace + "-fleet-agent-role"
	for _, o := range []struct{ apiVersion, kind, namespace, name string }{
		{"v1", "ServiceAccount", naming.SystemNamespace, "fleet-agent"}, {"v1", "ConfigMap", naming.SystemNamespace, "fleet-agent"},
		{"rbac.authorization.k8s.io/v1", "ClusterRole", "", role}, {"rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "", role + "-binding"},
		{"scheduling.k8s.io/v1", "PriorityClass", "", "fleet-agent-priority-class"},
		{"policy/v1", "PodDisruptionBudget", naming.SystemNamespace, "fleet-agent-pod-disruption-budget"},
		{"networking.k8s.io/v1", "NetworkPolicy", naming.SystemNamespace, "default-allow-all"},
		{"apps/v1", "Deployment", naming.SystemNamespace, "fleet-agent"},
	} {
		object := &unstructured.Unstructured{}
		object.SetAPIVersion(o.apiVersion)
		object.SetKind(o.kind)
		object.SetNamespace(o.namespace)
		object.SetName(o.name)
		objects = append(objects, object)
	}
	return objects
}

// ofRancherAgent reports whether Rancher Fleet applied an object for its agent. Its hub applies
// objects of imported members, and its agent applies the Bundle of itself.
func ofRancherAgent(o client.Object) bool {
	return strings.HasPrefix(strings.TrimPrefix(kube.ObjectSetOf(o).ID, "default-"), rancherAgentPrefix)
}

// imported returns the objects of an agent that Rancher Fleet's hub installed on a
// cluster without a release.
func (c *checked) imported(ctx context.Context) ([]*unstructured.Unstructured, error) {
	found, _, err := c.importedAmong(ctx, importedObjects(), agentRelease)
	return found, err
}

// importedAmong returns Rancher Fleet's objects on the cluster, and the commands to mark the others
// as objects of a release.
func (c *checked) importedAmong(ctx context.Context, objects []*unstructured.Unstructured,
	r chartRelease) (found []*unstructured.Unstructured, commands []string, err error) {
	seen := map[string]bool{}
	for _, o := range objects {
		mapping, err := c.RESTMapper().RESTMapping(o.GroupVersionKind().GroupKind(), o.GroupVersionKind().Version)
		if meta.IsNoMatchError(err) {
			continue // a kind that the chart defines
		} else if err != nil {
			return nil, nil, fmt.Errorf("looking up kind %s on %s: %w", o.GetKind(), c.role, err)
		}
		key := client.ObjectKey{Name: o.GetName()}
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			if key.Namespace = o.GetNamespace(); key.Namespace == "" {
				key.Namespace = r.namespace
			}
		}
		if id := mapping.Resource.GroupResource().String() + " " + key.String(); !seen[id] {
			seen[id] = true
		} else {
			continue
		}
		existing := &unstructured.Unstructured{}
		existing.SetGroupVersionKind(o.GroupVersionKind())
		switch err := c.Get(ctx, key, existing); {
		case apierrors.IsNotFound(err): // also if the chart defines the kind
		case apierrors.IsForbidden(err):
			return nil, nil, fmt.Errorf("%s may have %s %s of another agent, and you may not read it there: get the right to read it, "+
				"and run the command again: %w", c.role, o.GetKind(), key.Name, err)
		case err != nil:
			return nil, nil, fmt.Errorf("reading %s %s on %s: %w", o.GetKind(), key.Name, c.role, err)
		case isShared(existing): // the chart leaves it to its owner
		case isOfRelease(existing, r): // Muster's deployer puts the marks of the other one on the agent's own objects, too
		case ofRancherAgent(existing):
			found = append(found, existing)
		default:
			commands = append(commands, adoptCommand(c.contextName(), mapping.Resource.GroupResource().String(), existing, r))
		}
	}
	return found, commands, nil
}

// agentFits returns the objects of an imported agent. Its error names all objects in the way of an
// agent without a release. Rancher Fleet's marks are missing on these.
func (c *checked) agentFits(ctx context.Context, values map[string]any) ([]*unstructured.Unstructured, error) {
	h, err := c.helm(agentRelease) // after it has rendered a chart Helm writes nothing any more
	if err != nil {
		return nil, err
	}
	if revisions, err := h.history(); err != nil || len(revisions) > 0 {
		return nil, err
	}
	manifest, err := h.render(ctx, values)
	if err != nil {
		return nil, err
	}
	objects, err := objectsOf(manifest)
	if err != nil {
		return nil, fmt.Errorf("reading the objects of chart %s: %w", h.chart, err)
	}
	found, commands, err := c.importedAmong(ctx, objects, h.chartRelease)
	if err != nil || len(commands) > 0 {
		return nil, inTheWay(c.role, commands, err)
	}
	more, err := c.imported(ctx)
	for _, o := range more {
		if !slices.ContainsFunc(found, func(f *unstructured.Unstructured) bool { return f.GetUID() == o.GetUID() }) {
			found = append(found, o)
		}
	}
	return found, err
}

func inTheWay(role string, commands []string, err error) error {
	if err != nil {
		return err
	}
	return fmt.Errorf("objects on %s have the names of the agent's objects, and no mark of Rancher Fleet; nothing is changed. "+
		"Delete objects that you do not need, or let the release overwrite them:\n%s", role, strings.Join(commands, "\n"))
}

// asRevision returns a revision with the current objects of an imported agent. On an upgrade Helm
// patches them, and deletes objects without a place in Muster's chart. A rollback restores them.
func (h *helmOn) asRevision(objects []*unstructured.Unstructured) (*helm.Release, error) {
	var manifest strings.Builder
	for _, o := range objects {
		o = o.DeepCopy()
		for _, field := range [][]string{{"status"}, {"metadata", "uid"}, {"metadata", "resourceVersion"}, {"metadata", "creationTimestamp"},
			{"metadata", "generation"},
			{"metadata", "managedFields"}, {"metadata", "ownerReferences"}, {"metadata", "annotations", "deployment.kubernetes.io/revision"}} {
			unstructured.RemoveNestedField(o.Object, field...)
		}
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			return nil, fmt.Errorf("encoding %s %s: %w", o.GetKind(), o.GetName(), err)
		}
		manifest.WriteString("---\n# Source: " + h.chart + "/templates/imported.yaml\n" + string(text))
	}
	now := time.Now()
	return &helm.Release{
		Name: h.chart, Namespace: h.namespace, Version: 1, Manifest: manifest.String(), Config: map[string]any{},
		ApplyMethod: string(helm.ApplyMethodClientSideApply),
		Chart: &chartv2.Chart{Metadata: &chartv2.Metadata{APIVersion: chartv2.APIVersionV2, Name: h.chart, Version: importedVersion,
			Description: "The agent as Rancher Fleet's hub installed it"}},
		Info: &helm.Info{
			FirstDeployed: now, LastDeployed: now, Status: common.StatusDeployed,
			Description: "Noted by muster before Muster's agent took its place",
		},
	}, nil
}

// note makes the objects of an imported agent revision 1 of the release. None of them is changed.
func (h *helmOn) note(objects []*unstructured.Unstructured) error {
	revision, err := h.asRevision(objects)
	if err != nil {
		return err
	}
	if err := h.Releases.Create(revision); err != nil {
		return fmt.Errorf("noting the agent that Rancher Fleet's hub installed as revision 1 of release %s in namespace %s: %w",
			h.chart, h.namespace, err)
	}
	return nil
}
