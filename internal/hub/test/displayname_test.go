package hub_test

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// TestNamesForPeopleAreBounded creates members of both kinds as a dry run.
func TestNamesForPeopleAreBounded(t *testing.T) {
	f := newFixture(t)
	name, description := fleet.AnnotationDisplayName, fleet.AnnotationDescription
	for what, row := range map[string]struct {
		annotation, value string
		refused           bool
	}{
		"a name":                            {name, "Web shop (Zürich) 東京", false},
		"one character":                     {name, "W", false},
		"63 characters":                     {name, strings.Repeat("ü", 63), false},
		"64 characters":                     {name, strings.Repeat("x", 64), true},
		"an empty name":                     {name, "", true},
		"a name that ends with a space":     {name, "web ", true},
		"a name of two lines":               {name, "web\nshop", true},
		"a name that colors a terminal":     {name, "web\x1b[31m", true},
		"a name that turns the direction":   {name, "web\u202eshop", true},
		"a description":                     {description, strings.Repeat("ü", 1024), false},
		"a description that is too long":    {description, strings.Repeat("x", 1025), true},
		"a description with control bytes":  {description, "a\x07b", true},
		"another annotation may be as long": {"example.com/description", strings.Repeat("x", 2000), false},
	} {
		meta := metav1.ObjectMeta{Name: "named", Annotations: map[string]string{row.annotation: row.value}}
		mc := &clusterv1beta1.MemberCluster{ObjectMeta: meta}
		mc.Spec.Identity.Kind, mc.Spec.Identity.Name = "User", "named"
		meta.Namespace = f.workspace
		for kind, member := range map[string]client.Object{"Cluster": &fleet.Cluster{ObjectMeta: meta}, "MemberCluster": mc} {
			err := f.Create(context.Background(), member, client.DryRunAll)
			if says := err != nil && strings.Contains(err.Error(), "annotation "+row.annotation); says != row.refused || !says && err != nil {
				t.Errorf("%s of a %s: %v (invalid: %t)", what, kind, err, apierrors.IsInvalid(err))
			}
		}
	}
}
