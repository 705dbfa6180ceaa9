package chart

import (
	"fmt"

	"helm.sh/helm/v4/pkg/chart/loader/archive"
	helm "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/chartfetch"
	"github.com/muster-fleet/muster/internal/naming"
)

// annotationDigest is the annotation of a fetched chart for its digest.
const annotationDigest = "muster/chart-digest"

// Elsewhere reports whether the options select a chart outside the files.
func Elsewhere(files Files, options fleet.BundleDeploymentOptions) bool {
	if options.Helm == nil {
		return false
	}
	_, found := chartDir(files, options.Helm.Chart)
	return !found && (options.Helm.Repo != "" || chartfetch.IsURL(options.Helm.Chart))
}

// Archive is a fetched chart before loading.
type Archive struct {
	chartfetch.Archive
	// Incomplete is set if the chart is deployed without its missing dependencies.
	Incomplete bool
}

// Load loads the chart and notes the digest of the archive in it. A nil archive has no chart.
func (a *Archive) Load() (*helm.Chart, error) {
	if a == nil {
		return nil, nil
	}
	buffered, err := a.Unpack()
	if err != nil {
		return nil, err
	}
	made, err := loadFiles(buffered)
	if err != nil {
		return nil, fmt.Errorf("loading chart %s: %w", a.From, err)
	}
	made.Raw = nil // see load
	if made.Metadata.Annotations == nil {
		made.Metadata.Annotations = map[string]string{}
	}
	made.Metadata.Annotations[annotationDigest] = "sha256:" + naming.Digest(a.Data)
	return made, complete(made, a.Incomplete)
}

// loadFiles loads a chart within the limits for the files of a Bundle.
func loadFiles(buffered []*archive.BufferedFile) (*helm.Chart, error) {
	files := Files{}
	for _, file := range buffered {
		files[file.Name] = file.Data
	}
	if err := checkCosts(files, true); err != nil {
		return nil, err
	}
	return loader.LoadFiles(buffered)
}
