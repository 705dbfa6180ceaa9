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
	in := action.NewInstall(configuration)
	in.ReleaseName, in.Namespace, in.Timeout = r.Release, r.Namespace, r.Timeout()
	// A history without a deployed revision comes from failed first attempts.
	in.Replace = true
	in.ForceConflicts, in.TakeOwnership = true, r.takesOver()
	in.RollbackOnFailure, in.WaitStrategy, in.WaitForJobs = h.Atomic, r.waits(), h.WaitForJobs
	if h.Atomic { // rolling an installation back would uninstall it, with everything from before its history was lost
		after.adopts = func() { in.RollbackOnFailure = false }
	}
	in.EnableDNS, in.SkipSchemaValidation, in.DisableOpenAPIValidation = !h.DisableDNS, h.SkipSchemaValidation, true
	in.PostRenderer, in.PostRenderStrategy = after, action.PostRenderStrategyCombined
	in.SkipCRDs = true // bringCRDs has brought them
	in.Labels = r.labels()
	made, err := in.RunWithContext(ctx, r.Chart, r.Values)
	if err != nil {
		return nil, err
	}
	return made.(*helm.Release), nil
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
