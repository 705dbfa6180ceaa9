package anyform

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
)

func TestAConditionIsSetOnEveryForm(t *testing.T) {
	for name, status := range map[string]any{
		"no status": nil, "conditions of another form": map[string]any{"conditions": []any{"text", int64(1)}},
		"others": map[string]any{"conditions": []any{map[string]any{"type": "Other", "status": "True"}}, "kept": "yes"},
	} {
		object := Object("GitRepo")
		if status != nil {
			object.Object["status"] = status
		}
		SetCondition(object, time.Now(), kube.Condition("Ready", false, "Invalid", "m"))
		var repo fleet.GitRepo
		if err := Decode(object, &repo); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		ready := kube.FindCondition(repo.Status.Conditions, "Ready")
		if ready == nil || ready.Message != "m" || (kube.FindCondition(repo.Status.Conditions, "Other") != nil) != (name == "others") {
			t.Errorf("%s: %+v", name, repo.Status.Conditions)
		}
	}
}

func TestAnObjectThatDoesNotFitIsRefused(t *testing.T) {
	object := Object("GitRepo")
	object.SetNamespace("clusters")
	object.SetName("former")
	object.Object["spec"] = map[string]any{"paths": "text"}
	stored := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithObjects(object).WithStatusSubresource(object).Build()
	if err := stored.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		t.Fatal(err)
	}
	err := Decode(object, &fleet.GitRepo{})
	if err == nil {
		t.Fatal("a text was read as a list")
	}
	if err := Refuse(t.Context(), stored, object, time.Now(), "GitRepoInvalid", err); err != nil {
		t.Fatal(err)
	}
	after := Object("GitRepo")
	if err := stored.Get(t.Context(), client.ObjectKeyFromObject(object), after); err != nil {
		t.Fatal(err)
	}
	said := fmt.Sprint(after.Object["status"])
	if strings.Count(said, "was stored by an earlier definition") != 2 || fmt.Sprint(after.Object["spec"]) != "map[paths:text]" {
		t.Errorf("%v", after.Object)
	}
}

func TestWhichObjectsAreReconciled(t *testing.T) {
	stored := func(change func(o *unstructured.Unstructured)) *unstructured.Unstructured {
		object := Object("GitRepo")
		object.SetNamespace("clusters")
		object.SetName("web")
		object.SetUID("1")
		change(object)
		return object
	}
	leaving := func(o *unstructured.Unstructured) {
		deleted := metav1.Now()
		o.SetDeletionTimestamp(&deleted)
		o.SetFinalizers([]string{"example.com/held"})
	}
	for name, row := range map[string]struct {
		object *unstructured.Unstructured
		want   bool
		reason string
	}{
		"one that fits":              {stored(func(*unstructured.Unstructured) {}), true, ""},
		"a missing one is not":       {nil, false, ""},
		"one under deletion is not":  {stored(leaving), false, "Leaving"},
		"one of another form is not": {stored(func(o *unstructured.Unstructured) { o.Object["spec"] = "text" }), false, "GitRepoInvalid"},
	} {
		build := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithStatusSubresource(Object("GitRepo"))
		if row.object != nil {
			build = build.WithObjects(row.object)
		}
		c, repo := build.Build(), &fleet.GitRepo{}
		key := client.ObjectKey{Namespace: "clusters", Name: "web"}
		found, err := Read(t.Context(), c, key, repo, "GitRepoInvalid", time.Now())
		if err != nil || found != row.want {
			t.Errorf("%s: found %t, %v", name, found, err)
		}
		if row.object == nil {
			continue
		}
		if row.want && repo.UID != "1" {
			t.Errorf("%s: read %+v", name, repo.ObjectMeta)
		}
		after := Object("GitRepo")
		if err := c.Get(t.Context(), key, after); err != nil {
			t.Fatal(err)
		}
		var shown struct{ Status fleet.GitRepoStatus }
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"Status": after.Object["status"]}, &shown); err != nil {
			t.Fatal(err)
		}
		if reason := kube.ReasonOf(shown.Status.Conditions, fleet.ConditionReady); reason != row.reason {
			t.Errorf("%s: the condition Ready has the reason %q, want %q", name, reason, row.reason)
		}
	}
}
