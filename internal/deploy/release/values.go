package release

import (
	"cmp"
	"context"
	"fmt"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/yamlcheck"
)

const defaultValuesKey = "values.yaml"

// ValuesFrom merges values from Secrets and ConfigMaps on the member, later ones over earlier ones.
// It reads them with the account of the deployment, so a Bundle cannot read more than this account.
func (c *Cluster) ValuesFrom(ctx context.Context, options fleet.BundleDeploymentOptions, namespace string) (map[string]any, error) {
	merged := map[string]any{}
	if options.Helm == nil || len(options.Helm.ValuesFrom) == 0 {
		return merged, nil
	}
	as, err := c.actsAs(ctx, options)
	if err != nil {
		return nil, err
	}
	acting, err := c.As(as)
	if err != nil {
		return nil, err
	}
	for _, source := range options.Helm.ValuesFrom {
		text, from, err := readValues(ctx, acting.Kube, source, namespace)
		if err != nil {
			return nil, err
		}
		if err := yamlcheck.Check(text); err != nil {
			return nil, fmt.Errorf("reading %s: %w", from, err)
		}
		var values map[string]any
		if err := yaml.Unmarshal(text, &values); err != nil {
			// The error of the parser may quote the input.
			return nil, fmt.Errorf("%s holds no YAML of values", from)
		}
		merged = loader.MergeMaps(merged, values)
	}
	return merged, nil
}

func readValues(ctx context.Context, kube kubernetes.Interface, source fleet.ValuesFrom,
	namespace string) (text []byte, from string, err error) {
	kind, ref := "ConfigMap", source.ConfigMapKeyRef
	if ref == nil {
		kind, ref = "Secret", source.SecretKeyRef
	}
	if ref == nil || ref.Name == "" {
		return nil, "", fmt.Errorf("an entry of helm.valuesFrom names neither a ConfigMap nor a Secret")
	}
	namespace, key := cmp.Or(ref.Namespace, namespace), cmp.Or(ref.Key, defaultValuesKey)
	from = fmt.Sprintf("key %s of %s %s/%s on the member, for helm.valuesFrom", key, kind, namespace, ref.Name)
	found := false
	if kind == "Secret" {
		secret, getErr := kube.CoreV1().Secrets(namespace).Get(ctx, ref.Name, metav1.GetOptions{})
		if err = getErr; err == nil {
			text, found = secret.Data[key]
		}
	} else {
		configMap, getErr := kube.CoreV1().ConfigMaps(namespace).Get(ctx, ref.Name, metav1.GetOptions{})
		if err = getErr; err == nil {
			var value string
			value, found = configMap.Data[key]
			text = []byte(value)
		}
	}
	if err != nil {
		return nil, from, fmt.Errorf("reading %s: %w", from, err)
	}
	if !found {
		return nil, from, fmt.Errorf("%s is missing", from)
	}
	return text, from, nil
}
