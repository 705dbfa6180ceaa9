package ownbundle

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
)

func TestWhatIsWrittenForAnOwner(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := fleet.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	op := &fleet.HelmOp{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "web", UID: "mine"}}
	owner := Owner{Object: op, Kind: "HelmOp", Label: fleet.LabelHelmOpName, Reason: reasons.BundleRefused, Rename: "it another name",
		Shrink: "make it smaller"}
	bundle := func(edit ...func(*fleet.Bundle)) *fleet.Bundle {
		b := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "web", Labels: map[string]string{"team": "a"}}}
		b.Spec.DefaultNamespace = "shop"
		for _, one := range edit {
			one(b)
		}
		return b
	}
	labelled := func(key, value string) func(*fleet.Bundle) {
		return func(b *fleet.Bundle) { b.Labels = map[string]string{key: value} }
	}
	controlled := func(name string, uid types.UID) func(*fleet.Bundle) {
		return func(b *fleet.Bundle) {
			by := &fleet.HelmOp{ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid}}
			b.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(by, fleet.GroupVersion.WithKind("HelmOp"))}
		}
	}
	for name, row := range map[string]struct {
		present, wanted *fleet.Bundle
		reason, message string
	}{
		"there is none":           {nil, bundle(), "", ""},
		"its own":                 {bundle(controlled("web", op.UID)), bundle(), "", ""},
		"one of Rancher Fleet's":  {bundle(labelled(fleet.LabelHelmOpName, "web")), bundle(), "", ""},
		"one of another of these": {bundle(labelled(fleet.LabelHelmOpName, "other")), bundle(), reasons.BundleNameTaken, "is not of this HelmOp"},
		"a user's":                {bundle(), bundle(), reasons.BundleNameTaken, "delete that Bundle, or give it another name"},
		"another owner's, with the label": {bundle(labelled(fleet.LabelHelmOpName, "web"), controlled("other", "other")), bundle(),
			reasons.BundleNameTaken, "is not of this HelmOp, but of HelmOp other: give it another name"},
		"one of a deleted owner of this name": {bundle(labelled(fleet.LabelHelmOpName, "web"), controlled("web", "other")), bundle(),
			reasons.BundleNameTaken, "but of an earlier one: it is created again when it is gone"},
		"an agent's label": {nil, bundle(labelled(fleet.LabelAgent, "v1")), reasons.BundleRefused, "muster/agent-version"},
		"a large one": {nil, bundle(func(b *fleet.Bundle) {
			b.Spec.Resources = []fleet.BundleResource{{Name: "a", Content: strings.Repeat("x", maxObject)}}
		}), reasons.BundleRefused, "make it smaller"},
	} {
		built := fake.NewClientBuilder().WithScheme(scheme)
		if row.present != nil {
			built = built.WithObjects(row.present)
		}
		stored := built.Build()
		refusal, err := Writer{Client: stored, Live: stored}.Write(t.Context(), owner, row.wanted)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if row.reason != "" {
			if refusal == nil || refusal.Reason != row.reason || !strings.Contains(refusal.Message, row.message) {
				t.Errorf("%s: %+v", name, refusal)
			}
			continue
		}
		after := &fleet.Bundle{}
		if err := stored.Get(t.Context(), client.ObjectKeyFromObject(row.wanted), after); err != nil || refusal != nil {
			t.Errorf("%s: %+v, %v", name, refusal, err)
		}
		if !owner.Is(after) || after.Labels["team"] != "a" || after.Spec.DefaultNamespace != "shop" || len(after.OwnerReferences) != 1 {
			t.Errorf("%s: %+v", name, after)
		}
		version := after.ResourceVersion
		if _, err := (Writer{Client: stored, Live: stored}).Write(t.Context(), owner, bundle()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := stored.Get(t.Context(), client.ObjectKeyFromObject(after), after); err != nil || after.ResourceVersion != version {
			t.Errorf("%s: it was written again, %v", name, err)
		}
	}
}
