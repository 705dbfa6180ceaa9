package helmop

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/chartfetch"
	"github.com/muster-fleet/muster/internal/repository/scan"
)

// forms names the ways to give a chart.
const forms = "give helm.repo and helm.chart, or helm.repo with an oci:// address, or helm.chart with the https address of an archive"

// check returns the first problem of a spec.
func check(spec *fleet.HelmOpSpec) error {
	helm := spec.Helm
	if helm == nil || helm.Repo == "" && helm.Chart == "" {
		return errors.New("spec.helm names no chart: " + forms)
	}
	inRegistry := strings.HasPrefix(helm.Repo, "oci://")
	switch {
	case inRegistry && helm.Chart != "":
		return errors.New("spec.helm.chart is set beside an oci:// address in helm.repo: append the chart to the address")
	case helm.Repo == "" && !strings.HasPrefix(helm.Chart, "https://") && !strings.HasPrefix(helm.Chart, "http://"):
		return fmt.Errorf("spec.helm.chart %q is no address of an archive: %s", helm.Chart, forms)
	case helm.Repo == "" && helm.Version != "":
		return errors.New("spec.helm.version is set beside the address of an archive, which has one version: remove it")
	case helm.Repo != "" && !chartfetch.IsURL(helm.Repo):
		return fmt.Errorf("spec.helm.repo %q is no https, http or oci address: %s", helm.Repo, forms)
	case helm.Repo != "" && !inRegistry && helm.Chart == "":
		return errors.New("spec.helm.chart is empty: set it to the name of the chart in helm.repo")
	}
	for i := range spec.Targets {
		if own := spec.Targets[i].Helm; own != nil && (own.Repo != "" || own.Chart != "" || own.Version != "") {
			return fmt.Errorf("spec.targets[%d].helm names a chart, and all Clusters of a HelmOp get the chart of spec.helm: remove it there, or "+
				"create another HelmOp", i)
		}
	}
	for field, set := range map[string]bool{
		"resources": len(spec.Resources) > 0, "contentsId": spec.ContentsID != "", "valuesHash": spec.ValuesHash != "",
	} {
		if set {
			return fmt.Errorf("spec.%s is set, and a HelmOp deploys only its chart: remove it, or write a Bundle", field)
		}
	}
	return nil
}

// bundleOf returns the Bundle of a HelmOp with a fetched chart.
func bundleOf(op *fleet.HelmOp, helm *fleet.HelmOptions, chart *scan.Chart) (*fleet.Bundle, error) {
	bundle := &fleet.Bundle{
		TypeMeta:   metav1.TypeMeta{APIVersion: fleet.GroupVersion.String(), Kind: "Bundle"},
		ObjectMeta: metav1.ObjectMeta{Namespace: op.Namespace, Name: op.Name, Labels: maps.Clone(op.Spec.Labels)},
		Spec:       *op.Spec.BundleSpec.DeepCopy(),
	}
	if bundle.Labels == nil {
		bundle.Labels = map[string]string{}
	}
	bundle.Labels[fleet.LabelHelmOpName] = op.Name
	bundle.Spec.Helm, bundle.Spec.HelmOpOptions = helm.DeepCopy(), nil
	if len(bundle.Spec.Targets) == 0 {
		bundle.Spec.Targets = []fleet.BundleTarget{{Name: "default", ClusterGroup: "default"}}
	}
	if err := scan.PutChart(&bundle.Spec, chart); err != nil {
		return nil, err
	}
	return bundle, nil
}
