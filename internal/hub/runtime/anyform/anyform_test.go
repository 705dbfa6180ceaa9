package anyform

import (
	"fmt"
	"strings"
	"testing"
	"time"

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
