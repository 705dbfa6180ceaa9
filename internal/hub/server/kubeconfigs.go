package server

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	inventoryv1alpha1 "github.com/muster-fleet/muster/api/inventory/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/joining/importer"
	"github.com/muster-fleet/muster/internal/hub/members/access"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
)

// addKubeconfigs adds the readers of users' kubeconfigs: manager-initiated registration, and the
// access of other tools. They share a cache of Secrets of other owners.
func addKubeconfigs(ctx context.Context, mgr manager.Manager, deps controller.Deps) error {
	secrets, err := importer.NewSecretCache(ctx, mgr)
	if err != nil {
		return err
	}
	if err := importer.New(importer.Deps{Deps: deps, Secrets: secrets, Hub: mgr.GetConfig()}).Register(ctx, mgr); err != nil {
		return err
	}
	profiles, err := serves(ctx, mgr, inventoryv1alpha1.GroupVersion.WithKind("ClusterProfile"), "access providers")
	if err != nil {
		return err
	}
	return access.New(access.Deps{Deps: deps, Secrets: secrets, Hub: mgr.GetConfig(), Profiles: profiles}).Register(ctx, mgr)
}
