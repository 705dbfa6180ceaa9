package registration

import (
	"fmt"
	"slices"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
)

// revoked denies a request for a revoked Cluster.
func revoked(workspace, cluster string) decision {
	return decision{state: fleet.RegistrationDenied, reason: reasons.Revoked, cluster: cluster, message: fmt.Sprintf(
		"Cluster %s/%s is revoked by its annotation %s: to restore its access, muster revoke %s/%s --undo, or kubectl -n %s annotate "+
			"cluster.fleet.cattle.io %s %s-. Then let the cluster send a new request",
		workspace, cluster, clusterv1beta1.AnnotationRevoked, workspace, cluster, workspace, cluster, clusterv1beta1.AnnotationRevoked)}
}

func denied(reason, message string) decision {
	return decision{state: fleet.RegistrationDenied, reason: reason, message: message}
}

func names(clusters []clusterView) []string {
	out := make([]string, 0, len(clusters))
	for _, c := range clusters {
		out = append(out, c.name)
	}
	slices.Sort(out)
	return out
}
