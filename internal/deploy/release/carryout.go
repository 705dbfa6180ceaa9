package release

import (
	"context"
	"strconv"

	"helm.sh/helm/v4/pkg/action"
	helm "helm.sh/helm/v4/pkg/release/v1"
)

// carryOut returns Helm's operation for a deployment.
func (p past) carryOut() func(context.Context, *action.Configuration, Request, *renderer) (*helm.Release, error) {
	if p.fresh {
		return install
	}
	return upgrade
}

func install(ctx context.Context, configuration *action.Configuration, r Request, after *renderer) (*helm.Release, error) {
	h := r.helm()
	installation := action.NewInstall(configuration)
	installation.ReleaseName, installation.Namespace, installation.Timeout = r.Release, r.Namespace, r.Timeout()
	// A history without a deployed revision comes from failed first attempts.
	installation.Replace = true
	installation.ForceConflicts, installation.TakeOwnership = true, r.takesOver()
	installation.RollbackOnFailure, installation.WaitStrategy, installation.WaitForJobs = h.Atomic, r.waits(), h.WaitForJobs
	if h.Atomic { // rolling an installation back would uninstall it, with everything from before its history was lost
		after.adopts = func() { installation.RollbackOnFailure = false }
	}
	installation.EnableDNS, installation.SkipSchemaValidation = !h.DisableDNS, h.SkipSchemaValidation
	installation.DisableOpenAPIValidation = true
	installation.PostRenderer, installation.PostRenderStrategy = after, action.PostRenderStrategyCombined
	installation.SkipCRDs = true // bringCRDs has brought them
	installation.Labels = r.labels()
	installed, err := installation.RunWithContext(ctx, r.Chart, r.Values)
	if err != nil {
		return nil, err
	}
	return installed.(*helm.Release), nil
}

func upgrade(ctx context.Context, configuration *action.Configuration, r Request, after *renderer) (*helm.Release, error) {
	h := r.helm()
	up := action.NewUpgrade(configuration)
	up.Namespace, up.Timeout, up.MaxHistory, up.ResetValues = r.Namespace, r.Timeout(), configuration.Releases.MaxHistory, true
	// A new deployment reverts manual changes. Replacing excludes server-side apply.
	up.ServerSideApply, up.ForceConflicts, up.ForceReplace = strconv.FormatBool(!h.Force), !h.Force, h.Force
	up.TakeOwnership = r.takesOver()
	up.RollbackOnFailure, up.WaitStrategy, up.WaitForJobs = h.Atomic, r.waits(), h.WaitForJobs
	up.EnableDNS, up.SkipSchemaValidation, up.DisableOpenAPIValidation = !h.DisableDNS, h.SkipSchemaValidation, true
	up.PostRenderer, up.PostRenderStrategy = after, action.PostRenderStrategyCombined
	up.Labels = r.upgradeLabels()
	made, err := up.RunWithContext(ctx, r.Release, r.Chart, r.Values)
	if err != nil {
		return nil, err
	}
	return made.(*helm.Release), nil
}
