package view

import (
	"cmp"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// NameOf returns the users' name of an object: with its namespace if it has one.
func NameOf(o client.Object) string {
	if o.GetNamespace() == "" {
		return o.GetName()
	}
	return o.GetNamespace() + "/" + o.GetName()
}

// Title returns the users' name of an object with its kind.
func Title(o client.Object) string {
	switch o.(type) {
	case *fleet.Cluster:
		return "Cluster " + NameOf(o)
	case *clusterv1beta1.MemberCluster:
		return "MemberCluster " + NameOf(o)
	case *fleet.ClusterRegistrationToken:
		return "ClusterRegistrationToken " + NameOf(o)
	case *fleet.ClusterRegistration:
		return "ClusterRegistration " + NameOf(o)
	case *fleet.Bundle:
		return "Bundle " + NameOf(o)
	case *fleet.GitRepo:
		return "GitRepo " + NameOf(o)
	case *fleet.HelmOp:
		return "HelmOp " + NameOf(o)
	case *placement.ClusterResourcePlacement:
		return "ClusterResourcePlacement " + NameOf(o)
	}
	return cmp.Or(titleOfRun(o), "ResourcePlacement "+NameOf(o))
}
