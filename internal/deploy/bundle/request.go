package bundle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	contents "github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/delivery/chart"
	"github.com/muster-fleet/muster/internal/deploy/release"
	"github.com/muster-fleet/muster/internal/deploy/render"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/naming"
)

// request collects the input of a deployment, and returns the maximum number of its hooks.
func (d *Deployer) request(ctx context.Context, s observation) (release.Request, int, error) {
	spec := s.deployment.Spec
	content := contents.ContentName(spec.DeploymentID)
	packed, err := d.Hub.Content(ctx, content)
	if err != nil {
		return release.Request{}, 0,
			withReason(reasons.ContentUnreadable, fmt.Errorf("reading Content %s on the hub: %s", content, d.Hub.Explain(err)))
	}
	resources, err := contents.Unpack(packed)
	if err != nil {
		return release.Request{}, 0, withReason(reasons.ContentRefused, err)
	}
	files, err := chart.Decode(resources)
	if err != nil {
		return release.Request{}, 0, withReason(reasons.ContentRefused, err)
	}
	var archive *chart.Archive
	if chart.Elsewhere(files, spec.Options) {
		if err := contents.CheckChartVersion(spec.Options.Helm); err != nil {
			return release.Request{}, 0, withReason(reasons.ChartVersionRefused, err)
		}
		if archive, err = d.fetch(ctx, *spec.Options.Helm); err != nil {
			return release.Request{}, 0, err
		}
	}
	from, err := d.Cluster.ValuesFrom(ctx, spec.Options, s.namespace)
	if err != nil {
		return release.Request{}, 0, withReason(reasons.ValuesInvalid, err)
	}
	own, err := d.values(ctx, s.deployment)
	if err != nil {
		return release.Request{}, 0, withReason(reasons.ValuesInvalid, err)
	}
	copies, err := d.copies(ctx, spec.Options)
	if err != nil {
		return release.Request{}, 0, withReason(reasons.DownstreamResourceUnreadable, err)
	}
	input := render.Input{
		Files: files, Archive: archive, Options: spec.Options, Name: naming.Release(s.deployment.Name), Content: content, Own: own, From: from,
	}
	loaded, err := d.Renderer.Load(ctx, input)
	if err != nil {
		return release.Request{}, 0, loadError(err)
	}
	return release.Request{
		Bundle: s.deployment.Name, Workspace: s.deployment.Labels[fleet.LabelBundleNamespace], Release: s.name, Namespace: s.namespace,
		Chart: loaded.Chart, Options: spec.Options,
		Values: loaded.Values, Copies: copies,
		Render: func(ctx context.Context, with render.Templates, lookUp render.Lookup) (map[string]string, error) {
			return d.Renderer.Render(ctx, input, with, lookUp)
		},
		DeploymentID: spec.DeploymentID, Commit: s.deployment.Labels[fleet.LabelCommit], Member: d.Member,
		UID: string(s.deployment.UID), Version: s.deployment.ResourceVersion, Agent: isAgent(s.deployment),
	}, loaded.Hooks, nil
}

// loadError adds a reason to the error of an unreadable chart.
func loadError(err error) error {
	var unsupported *chart.Unsupported
	var ended *render.Ended
	switch {
	case errors.As(err, &unsupported):
		return withReason(reasons.FieldNotImplemented, err)
	case errors.As(err, &ended):
		return withReason(reasons.DeployerCrashed, err)
	case errors.Is(err, chart.ErrArchive):
		return withReason(reasons.ChartUnreadable, err)
	}
	return withReason(reasons.ResourcesInvalid, err)
}

// values returns the values of a BundleDeployment. The hub keeps them in a Secret of the same name.
func (d *Deployer) values(ctx context.Context, deployment *fleet.BundleDeployment) (map[string]any, error) {
	var encoded []byte
	if helm := deployment.Spec.Options.Helm; helm != nil && helm.Values != nil {
		encoded = helm.Values.Raw
	}
	where := "spec.options.helm.values"
	if deployment.Spec.ValuesHash != "" {
		where = "secret " + deployment.Namespace + "/" + deployment.Name + " on the hub"
		secret, err := d.Hub.Secret(ctx, deployment.Name)
		if err != nil {
			return nil, fmt.Errorf("reading the values in %s: %s", where, d.Hub.Explain(err))
		}
		if contents.ValuesHash(secret.Data) != deployment.Spec.ValuesHash {
			return nil, fmt.Errorf("the values in %s are not those that spec.valuesHash announces: waiting for the hub to write them", where)
		}
		encoded = secret.Data[fleet.KeyValues]
	}
	values := map[string]any{}
	if len(encoded) == 0 {
		return values, nil
	}
	if err := json.Unmarshal(encoded, &values); err != nil {
		// The error of the parser may quote the input.
		return nil, fmt.Errorf("%s holds no JSON object", where)
	}
	return values, nil
}
