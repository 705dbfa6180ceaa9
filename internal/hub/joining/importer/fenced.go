package importer

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/fleet/term"
	"github.com/muster-fleet/muster/internal/naming"
)

// obeyedTerm reads the term of the hub that the agent of a cluster obeys; nil if it knows none. A
// term without a valid signature was not written by a hub, and counts as none.
func (d *downstream) obeyedTerm(ctx context.Context, namespace string) (*clusterv1beta1.HubTerm, error) {
	if !isNamespace(namespace) {
		return nil, errNoNamespace
	}
	var configMap corev1.ConfigMap
	err := d.Get(ctx, types.NamespacedName{Namespace: namespace, Name: naming.ObeyedTermConfigMap}, &configMap)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // there is none
	}
	if err != nil {
		return nil, err
	}
	obeyed, err := term.Decode(configMap.Data[term.ConfigMapKey])
	if err != nil {
		return nil, nil //nolint:nilerr,nilnil // anyone with access to the cluster may have written it
	}
	return obeyed, nil
}

// checkTerm returns a problem if the agent of the cluster obeys another hub with the key of this
// hub, and a higher term. This hub then changes nothing on the cluster, and stops.
func (c *Controller) checkTerm(ctx context.Context, i installation) error {
	namespaces := []string{i.values.Namespace()}
	if last := i.observed.last; last != nil && last.Namespace != "" && last.Namespace != namespaces[0] {
		namespaces = append(namespaces, last.Namespace)
	}
	for _, namespace := range namespaces {
		obeyed, err := i.obeyedTerm(ctx, namespace)
		if err != nil {
			return i.explain("looking for the term that the agent obeys", err)
		}
		if err := c.Identity.Check(obeyed, client.ObjectKeyFromObject(i.cluster).String()); err != nil {
			return setback(reasons.AgentOfOtherHub, "the agent obeys %s, with term %d: this hub has a lower term, and changes nothing",
				term.Name(obeyed), obeyed.Term)
		}
	}
	return nil
}
