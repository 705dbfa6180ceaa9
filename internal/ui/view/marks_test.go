package view

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/ui/explain"
)

// annotationsOfTheAPI returns all annotations with a constant in the API packages.
func annotationsOfTheAPI(t *testing.T) (all []string) {
	t.Helper()
	files, err := filepath.Glob("../../../api/*/v1*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, is := n.(*ast.ValueSpec)
			if !is || !strings.HasPrefix(spec.Names[0].Name, "Annotation") || len(spec.Values) == 0 {
				return true
			}
			if value, is := spec.Values[0].(*ast.BasicLit); is {
				key, err := strconv.Unquote(value.Value)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, key)
			}
			return true
		})
	}
	if len(all) < 40 {
		t.Fatalf("there are only %d annotations: %v", len(all), all)
	}
	return all
}

// TestATableShowsTheSameOfAMemberWithItsMarksOnly tries all annotations of the API alone, beside a
// cordon, and together, with values of each form. A cache with the marks only then shows the same.
func TestATableShowsTheSameOfAMemberWithItsMarksOnly(t *testing.T) {
	now := time.Now()
	every := annotationsOfTheAPI(t)
	look := func(member client.Object, annotations map[string]string) []string {
		o := member.DeepCopyObject().(client.Object)
		o.SetAnnotations(annotations)
		seen := append(Row(o, now), DisplayName(o))
		for _, f := range explain.Of(o) {
			seen = append(seen, f.Reason, f.Message)
		}
		return seen
	}
	quarantined := &clusterv1beta1.MemberCluster{}
	quarantined.Status.Conditions = []metav1.Condition{{
		Type: clusterv1beta1.ConditionQuarantined, Status: metav1.ConditionTrue, Reason: reasons.Quarantined,
	}}
	changing := map[string]bool{}
	for _, value := range []string{
		"true", "old:NoSchedule", now.UTC().Format(time.RFC3339), membership.DrainProgress{Moved: 1, Total: 3, Seen: metav1.NewTime(now)}.Value(),
	} {
		for _, member := range []client.Object{&fleet.Cluster{}, &clusterv1beta1.MemberCluster{}, quarantined} {
			all := map[string]string{}
			for _, key := range every {
				all[key] = value
				for _, set := range []map[string]string{{}, {fleet.AnnotationCordoned: "true"}} {
					before := look(member, set)
					set[key] = value
					after := look(member, set)
					if !slices.Equal(before, after) {
						changing[key] = true
					}
					kept := Marks(&metav1.ObjectMeta{Annotations: set})
					if diff := cmp.Diff(after, look(member, kept)); diff != "" {
						t.Errorf("with only the marks of %v (-want +got):\n%s", set, diff)
					}
				}
			}
			if diff := cmp.Diff(look(member, all), look(member, Marks(&metav1.ObjectMeta{Annotations: all}))); diff != "" {
				t.Errorf("all with the value %s (-want +got):\n%s", value, diff)
			}
		}
	}
	changing[fleet.AnnotationDrained] = true // it ends a drain, so it changes a row only beside its progress
	if diff := cmp.Diff(slices.Sorted(slices.Values(memberMarks)), slices.Sorted(maps.Keys(changing))); diff != "" {
		t.Errorf("the marks are not the annotations that change a row (-marks +changing):\n%s", diff)
	}
}

func TestMarksAreFewAndSmall(t *testing.T) {
	member := &metav1.ObjectMeta{Annotations: map[string]string{"other": "x", fleet.AnnotationTaints: strings.Repeat("x", 1<<20)}}
	marks := Marks(member)
	if len(marks) != 1 || len(marks[fleet.AnnotationTaints]) > maxMark+len("...") {
		t.Errorf("it keeps %d annotations, one of %d bytes", len(marks), len(marks[fleet.AnnotationTaints]))
	}
	if marks := Marks(&metav1.ObjectMeta{Annotations: map[string]string{"other": "x"}}); marks != nil {
		t.Errorf("without a mark it is %v", marks)
	}
}
