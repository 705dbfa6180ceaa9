package hub_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/agent"
	"github.com/muster-fleet/muster/internal/naming"
)

// factsConfigMap is the ConfigMap with custom facts of the agents in this file.
const factsConfigMap = "muster-facts"

// withFacts has an agent report the facts of the ConfigMap.
func withFacts(o *agent.Options) { o.FactsConfigMap = factsConfigMap }

// clusterProperty defines the kind of KEP-2149, and creates one of the name.
func (f fixture) clusterProperty(name, value string) {
	f.t.Helper()
	const group, version = "about.k8s.io", "v1beta1"
	text := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}
	err := f.Create(context.Background(), &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{
			Name: "clusterproperties." + group, Annotations: map[string]string{"api-approved.kubernetes.io": "unapproved, a test's"},
		},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.ClusterScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "clusterproperties", Kind: "ClusterProperty"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: version, Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &text},
			}},
		},
	})
	f.check(client.IgnoreAlreadyExists(err))
	property := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"value": value}}}
	property.SetAPIVersion(group + "/" + version)
	property.SetKind("ClusterProperty")
	property.SetName(name)
	f.eventually("the kind is served", func() error {
		err := f.Create(context.Background(), property.DeepCopy())
		if meta.IsNoMatchError(err) {
			return err
		}
		return client.IgnoreAlreadyExists(err)
	})
	f.t.Cleanup(func() { f.check(client.IgnoreNotFound(f.Delete(context.Background(), property))) })
}

// TestFactsBecomeLabelsWhenAskedFor has real agents, of a Cluster and of a MemberCluster.
func TestFactsBecomeLabelsWhenAskedFor(t *testing.T) {
	f := newFixture(t)
	f.clusterProperty("cluster.clusterset.k8s.io", "here")
	custom := func(m *member) {
		f.check(f.Create(context.Background(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: m.agentNamespace, Name: factsConfigMap},
			Data:       map[string]string{"color": "blue", "rack": "r1", "k8s.io": "forged", "x.muster": "forged"},
		}))
	}
	_, values := f.token("facts", "")
	custom(f.join(values, map[string]any{"clientID": "facts"}, withFacts))
	r := f.register("facts", every(10))
	r.until("ReadyToJoin", metav1.ConditionTrue, "MemberClusterReadyToJoin")
	custom(r.serve(f, withFacts))
	for what, record := range map[string]client.Object{
		"a Cluster":       &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: naming.Cluster("facts")}},
		"a MemberCluster": &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: r.name}},
	} {
		t.Run(what, func(*testing.T) { f.showsFacts(record) })
	}
}

// showsFacts has the facts of a member as properties, and as labels while a user wants them.
func (f fixture) showsFacts(record client.Object) {
	f.t.Helper()
	read := func() error { return f.Get(context.Background(), client.ObjectKeyFromObject(record), record) }
	f.eventually("the facts are properties", func() error {
		if err := read(); err != nil {
			return err
		}
		properties := propertiesOf(record)
		for name, want := range map[string]string{
			"color": "blue", "rack": "r1", "cluster.clusterset.k8s.io": "here", "k8s.io": "", "x.muster": "",
		} {
			if got := properties[name].Value; got != want {
				return fmt.Errorf("%s is %q: %v", name, got, properties)
			}
		}
		if properties["k8s.io/k8s-version"].Value == "" {
			return errors.New("the version is missing")
		}
		return nil
	})
	annotate := func(patch string) {
		f.check(f.Patch(context.Background(), record, client.RawPatch(types.MergePatchType, []byte(`{"metadata":`+patch+`}`))))
	}
	labels := func(what string, want map[string]string) {
		f.t.Helper()
		f.eventually(what, func() error {
			if err := read(); err != nil {
				return err
			}
			got := map[string]string{}
			for key, value := range record.GetLabels() {
				if strings.Contains(key, "facts.muster/") && key != "facts.muster/kubernetes-version" {
					got[key] = value
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				return fmt.Errorf("(-want +got):\n%s", diff)
			}
			return nil
		})
	}
	annotate(`{"labels":{"custom.facts.muster/rack":"mine"},"annotations":{"muster/labels-from-facts":"color,rack,kubernetes-version"}}`)
	labels("the wanted facts are labels", map[string]string{"custom.facts.muster/color": "blue", "custom.facts.muster/rack": "mine"})
	if record.GetLabels()["facts.muster/kubernetes-version"] == "" {
		f.t.Errorf("the version is no label: %v", record.GetLabels())
	}
	annotate(`{"annotations":{"muster/labels-from-facts":null}}`)
	labels("only the user's label is left", map[string]string{"custom.facts.muster/rack": "mine"})
	if _, marked := record.GetAnnotations()[fleet.AnnotationFactLabels]; marked {
		f.t.Errorf("the mark is left: %v", record.GetAnnotations())
	}
	err := f.Patch(context.Background(), record, client.RawPatch(types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"muster/labels-from-facts":"a/b"}}}`)))
	if err == nil || !strings.Contains(err.Error(), "muster/labels-from-facts lists names of facts") {
		f.t.Errorf("a name that no fact may have: %v", err)
	}
}

func propertiesOf(record client.Object) map[string]clusterv1beta1.PropertyValue {
	if cluster, is := record.(*fleet.Cluster); is {
		return cluster.Status.Properties
	}
	return record.(*clusterv1beta1.MemberCluster).Status.Properties
}
