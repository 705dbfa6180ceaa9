package release

import (
	"context"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/engine"

	"github.com/muster-fleet/muster/internal/deploy/render"
)

// templates renders the templates of a request once, at Helm's first use: the definitions of the
// chart are served by then.
type templates struct {
	ctx           context.Context //nolint:containedctx // Helm's functions have none
	configuration *action.Configuration
	acting        *Cluster
	request       Request
	past          past

	done  bool
	files map[string]string
	err   error
}

func (t *templates) render() (map[string]string, error) {
	if t.done {
		return t.files, t.err
	}
	t.done = true
	h := t.request.helm()
	t.files, t.err = t.request.Render(t.ctx, render.Templates{
		Values: t.request.Values, Capabilities: t.configuration.Capabilities, EnableDNS: !h.DisableDNS, NoSchema: h.SkipSchemaValidation,
		Release: common.ReleaseOptions{
			Name: t.request.Release, Namespace: t.request.Namespace, Revision: t.past.revision(t.request), IsInstall: t.past.fresh,
			IsUpgrade: !t.past.fresh,
		},
	}, engine.NewLookupFunction(t.acting.config))
	return t.files, t.err
}
