package hub_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
)

var kindOfExports = schema.GroupVersionKind{Group: "networking.fleet.azure.com", Version: "v1alpha1", Kind: "InternalServiceExport"}

// exported is a service of the member, by its name.
func (r *registered) exported(name string) *unstructured.Unstructured {
	export := &unstructured.Unstructured{}
	export.SetGroupVersionKind(kindOfExports)
	export.SetNamespace(r.namespaceName())
	export.SetName(name)
	return export
}

// exportsServed has the hub serve the kind of KubeFleet's networking agents.
func (f fixture) exportsServed() {
	f.t.Helper()
	keeps := true
	err := f.Create(context.Background(), &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "internalserviceexports.networking.fleet.azure.com", Annotations: map[string]string{
			"api-approved.kubernetes.io": "unapproved, a test",
		}},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "networking.fleet.azure.com", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: "internalserviceexports", Singular: "internalserviceexport", Kind: kindOfExports.Kind,
				ListKind: kindOfExports.Kind + "List",
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1alpha1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{
					OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &keeps},
				},
			}},
		},
	})
	if !apierrors.IsAlreadyExists(err) {
		f.check(err)
	}
}

func (r *registered) export(name string) *unstructured.Unstructured {
	r.t.Helper()
	export := r.exported(name)
	r.eventually("the export is created", func() error { return r.Create(context.Background(), export.DeepCopy()) })
	return export
}

// TestExportedServicesKeepADeletedMemberUnlessItSkipsThat takes more than 30 s: so often the hub
// checks a kept member again.
func TestExportedServicesKeepADeletedMemberUnlessItSkipsThat(t *testing.T) {
	f := newFixture(t)
	f.exportsServed()
	ctx := context.Background()
	kept, skips, changes := f.register("kept"), f.register("skips"), f.register("changes")
	for _, r := range []*registered{kept, skips, changes} {
		r.until("ReadyToJoin", metav1.ConditionTrue, "MemberClusterReadyToJoin")
		r.export("web")
	}
	mode := func(r *registered, mode string) {
		record := r.record()
		f.check(f.Patch(ctx, &record, client.RawPatch("application/merge-patch+json",
			fmt.Appendf(nil, `{"spec":{"deleteOptions":{"validationMode":%q}}}`, mode))))
	}
	mode(skips, clusterv1beta1.ValidationSkip)
	mode(changes, "Strict")
	for _, r := range []*registered{kept, skips, changes} {
		record := r.record()
		f.check(f.Delete(ctx, &record))
	}
	skips.untilGone()
	for _, r := range []*registered{kept, changes} {
		validated := r.until("DeletionValidated", metav1.ConditionFalse, "ServicesExported")
		joined := r.until("Joined", metav1.ConditionTrue, "Leaving")
		if !strings.Contains(validated.Message, "exports 1 services (web)") || !strings.Contains(joined.Message, validated.Message) {
			t.Errorf("it says %q and %q", validated.Message, joined.Message)
		}
	}
	mode(changes, clusterv1beta1.ValidationSkip)
	changes.untilGone()
	record := kept.record() // it is there
	if record.DeletionTimestamp == nil {
		t.Error("it is not deleted")
	}
	f.check(f.Delete(ctx, kept.export("db")))
	f.check(f.Delete(ctx, kept.exported("web")))
	kept.untilGone()
}
