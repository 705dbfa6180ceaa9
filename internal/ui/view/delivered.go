package view

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Delivered returns the BundleDeployments and Works of a member, without their spec, and the
// result of Tree. It lists them once for both.
func Delivered(ctx context.Context, c client.Client, member client.Object) (deliveries []client.Object, tree *Node) {
	g := &gathering{Client: c, ctx: ctx, listed: map[string]listed{}}
	tree = g.tree(member)
	for _, list := range g.listed {
		deliveries = append(deliveries, list.objects...)
	}
	return deliveries, tree
}
