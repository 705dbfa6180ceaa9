package server

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-fleet/muster/internal/hub/bundles/agentbundle"
	"github.com/muster-fleet/muster/internal/hub/bundles/bundle"
	"github.com/muster-fleet/muster/internal/hub/bundles/clustergroup"
	"github.com/muster-fleet/muster/internal/hub/bundles/initgate"
	"github.com/muster-fleet/muster/internal/hub/bundles/policy"
	"github.com/muster-fleet/muster/internal/hub/bundles/schedule"
	"github.com/muster-fleet/muster/internal/hub/bundles/sourcestatus"
	"github.com/muster-fleet/muster/internal/hub/gitops/secretaccess"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/hub/runtime/decisions"
)

// addBundles adds the controllers of Bundles, and the controllers of their delays and restrictions.
func addBundles(ctx context.Context, mgr manager.Manager, deps controller.Deps, agents *agentbundle.Controller, shown *decisions.Publisher,
	stateDir string) error {
	d := bundle.Deps{Deps: deps, IsAgents: agents.Wrote, AgentChart: agents.Content, StateDir: stateDir}
	return errors.Join(bundle.New(d).Register(ctx, mgr),
		agents.Register(mgr), agentbundle.NewMembers(deps).Register(mgr), clustergroup.New(deps, shown).Register(mgr),
		schedule.New(deps).Register(mgr), initgate.New(deps).Register(mgr), policy.New(deps).Register(mgr))
}

// addGitOps adds the rights of the program for repositories, if it runs, and the resources in the
// status of GitRepos and HelmOps.
func addGitOps(ctx context.Context, mgr manager.Manager, deps controller.Deps, options Options) error {
	if options.WithoutGitOps {
		return nil
	}
	return errors.Join(secretaccess.New(deps).Register(mgr), sourcestatus.Register(ctx, mgr, deps))
}
