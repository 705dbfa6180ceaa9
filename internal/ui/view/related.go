package view

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/kube"
)

// lookedAt limits the unready Clusters whose deployment of a Bundle is read.
const lookedAt = 3

// gathering reads related objects, to explain the problems of another one.
type gathering struct {
	client.Client
	ctx     context.Context
	objects []client.Object
	unseen  []error
	// listed holds the lists already read, by kind and namespace.
	listed map[string]listed
}

// listed is the content of a list, or the error of reading it.
type listed struct {
	objects []client.Object
	err     error
}

// Related returns the objects related to an object, and the errors of failed reads. It reads only
// the relatives of the object, however large the fleet is. The exception is a Cluster without an
// agent: Related then reads all requests of its workspace.
func Related(ctx context.Context, c client.Client, subject client.Object) (objects []client.Object, unseen []error) {
	g := &gathering{Client: c, ctx: ctx, listed: map[string]listed{}}
	g.relate(subject)
	return g.objects, g.unseen
}

func (g *gathering) relate(subject client.Object) {
	switch o := subject.(type) {
	case *fleet.Cluster:
		status := membership.ClusterStatus(&o.Status, nil)
		if status.Agent != membership.AgentOnline {
			g.requestsOf(o)
		} else if !status.Ready {
			g.delivered(&fleet.BundleDeploymentList{}, membership.Namespace(o))
		}
	case *clusterv1beta1.MemberCluster:
		if membership.MemberClusterStatus(&o.Status).Ready {
			g.delivered(&placement.WorkList{}, membership.Namespace(o))
		}
	case *fleet.ClusterRegistration:
		if name := o.Labels[fleet.LabelRegistrationToken]; name != "" {
			token := &fleet.ClusterRegistrationToken{}
			err := g.Get(g.ctx, client.ObjectKey{Namespace: o.Namespace, Name: name}, token)
			if g.note(err); err == nil {
				g.objects = append(g.objects, token)
			}
		}
	case *fleet.Bundle:
		g.deploymentsOf(o)
	case *fleet.GitRepo:
		g.bundlesOf(o, fleet.LabelRepoName)
	case *fleet.HelmOp:
		g.bundlesOf(o, fleet.LabelHelmOpName)
	}
}

// bundlesOf gathers the Bundles of a GitRepo or a HelmOp, without their content.
func (g *gathering) bundlesOf(owner client.Object, label string) {
	g.note(Each(g.ctx, g, &fleet.BundleList{}, func(o client.Object) {
		bundle := o.(*fleet.Bundle)
		if controller := metav1.GetControllerOf(bundle); controller != nil && controller.UID == owner.GetUID() {
			bundle.Spec = fleet.BundleSpec{}
			g.objects = append(g.objects, bundle)
		}
	}, client.InNamespace(owner.GetNamespace()), client.MatchingLabels{label: owner.GetName()}))
}

// each gathers the objects of a kind.
func (g *gathering) each(list client.ObjectList, options ...client.ListOption) {
	g.note(Each(g.ctx, g, list, func(o client.Object) { g.objects = append(g.objects, o) }, options...))
}

// delivered gathers the deliveries to the member of a namespace.
func (g *gathering) delivered(list client.ObjectList, namespace string) {
	all := g.in(namespace, list)
	g.objects = append(g.objects, all.objects...)
	g.note(all.err)
}

// in returns the deliveries to the member of a namespace, without their spec: the spec is large and
// explains no problem.
func (g *gathering) in(namespace string, list client.ObjectList) listed {
	key := fmt.Sprintf("%T %s", list, namespace)
	result, cached := g.listed[key]
	if cached {
		return result
	}
	result.err = Each(g.ctx, g, list, func(o client.Object) {
		switch o := o.(type) {
		case *placement.Work:
			o.Spec = placement.WorkSpec{}
		case *fleet.BundleDeployment:
			o.Spec = fleet.BundleDeploymentSpec{}
		}
		o.SetManagedFields(nil)
		result.objects = append(result.objects, o)
	}, client.InNamespace(namespace))
	g.listed[key] = result
	return result
}

// note stores the error of a failed read. A missing object is no error, but an unserved kind is.
func (g *gathering) note(err error) {
	if client.IgnoreNotFound(err) != nil || kube.NotServed(err) {
		g.unseen = append(g.unseen, err)
	}
}

// requestsOf gathers the requests to register as a Cluster.
func (g *gathering) requestsOf(cluster *fleet.Cluster) {
	err := Each(g.ctx, g, &fleet.ClusterRegistrationList{}, func(o client.Object) {
		r := o.(*fleet.ClusterRegistration)
		if id := membership.ClientID(cluster); r.Status.ClusterName == cluster.Name || id != "" && r.Spec.ClientID == id {
			g.objects = append(g.objects, r)
		}
	}, client.InNamespace(cluster.Namespace))
	g.note(err)
}

// deploymentsOf gathers the deployments of a Bundle on some of the unready Clusters in its status.
func (g *gathering) deploymentsOf(bundle *fleet.Bundle) {
	not := bundle.Status.Summary.NonReadyResources
	for _, named := range not[:min(lookedAt, len(not))] {
		workspace, name, elsewhere := strings.Cut(named.Name, "/")
		if !elsewhere { // a Cluster of the Bundle's own workspace
			workspace, name = bundle.Namespace, named.Name
		}
		var cluster fleet.Cluster
		if err := g.Get(g.ctx, client.ObjectKey{Namespace: workspace, Name: name}, &cluster); err != nil {
			g.note(fmt.Errorf("the deployment on %s: %w", named.Name, err))
			continue
		}
		g.each(&fleet.BundleDeploymentList{}, client.InNamespace(membership.Namespace(&cluster)),
			client.MatchingLabels{fleet.LabelBundleName: bundle.Name, fleet.LabelBundleNamespace: bundle.Namespace})
	}
}
