package settings

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/muster-fleet/muster/internal/naming"
)

// Access holds the namespaces where the hub keeps kubeconfigs of members for other tools. An empty
// namespace turns a tool off.
type Access struct {
	// Workspaces lists the workspaces open to the tools; * stands for all.
	Workspaces []string
	// ArgoCD is the namespace of Argo CD, ArgoCDProject the project of its clusters; empty for all
	// projects.
	ArgoCD, ArgoCDProject string
	// Flux is the namespace of the Kustomizations and HelmReleases of Flux.
	Flux string
	// Inventory is the namespace of a tool for ClusterProfiles.
	Inventory string
}

// Lists reports whether the tools may reach the Clusters of a workspace. MemberClusters have none:
// an administrator stores their kubeconfigs.
func (a Access) Lists(workspace string) bool {
	return workspace == "" || slices.Contains(a.Workspaces, "*") || slices.Contains(a.Workspaces, workspace)
}

type wireAccess struct {
	Workspaces         []string `json:"workspaces"`
	ArgoCDNamespace    string   `json:"argocdNamespace"`
	ArgoCDProject      string   `json:"argocdProject"`
	FluxNamespace      string   `json:"fluxNamespace"`
	InventoryNamespace string   `json:"inventoryNamespace"`
}

func (w wireAccess) parse() (Access, error) {
	for _, workspace := range w.Workspaces {
		if problems := validation.IsDNS1123Label(workspace); workspace != "*" && len(problems) > 0 {
			return Access{}, fmt.Errorf("access.workspaces %q: %s", workspace, problems[0])
		}
	}
	for _, one := range []struct{ key, namespace string }{
		{"argocdNamespace", w.ArgoCDNamespace}, {"fluxNamespace", w.FluxNamespace}, {"inventoryNamespace", w.InventoryNamespace},
	} {
		if problem := accessProblem(one.namespace); problem != "" {
			return Access{}, fmt.Errorf("access.%s %q: %s", one.key, one.namespace, problem)
		}
	}
	if problems := validation.IsDNS1123Subdomain(w.ArgoCDProject); w.ArgoCDProject != "" && len(problems) > 0 {
		return Access{}, fmt.Errorf("access.argocdProject %q: %s", w.ArgoCDProject, problems[0])
	}
	return Access{Workspaces: w.Workspaces, ArgoCD: w.ArgoCDNamespace, ArgoCDProject: w.ArgoCDProject, Flux: w.FluxNamespace,
		Inventory: w.InventoryNamespace}, nil
}

// accessProblem returns the fault of a namespace for kubeconfigs, or "". In the namespaces of the
// fleet and of Kubernetes itself, other programs read Secrets.
func accessProblem(namespace string) string {
	if namespace == "" {
		return ""
	}
	if problems := validation.IsDNS1123Label(namespace); len(problems) > 0 {
		return problems[0]
	}
	hasPrefix := func(prefix string) bool { return strings.HasPrefix(namespace, prefix) }
	if slices.Contains(fleetNamespaces, namespace) || slices.ContainsFunc([]string{"kube-", "fleet-member-", "cluster-"}, hasPrefix) {
		return "want the namespace of the tool, and none of Kubernetes, of the fleet or of a member"
	}
	return ""
}

var fleetNamespaces = []string{
	naming.SystemNamespace, naming.RegistrationNamespace(naming.SystemNamespace), naming.MemberSystemNamespace,
	naming.RegistrationNamespace(naming.MemberSystemNamespace), upstreamLocal, "fleet-default", "default",
}
