package bundle

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

func TestTheStoreKeepsTheSameOfABundleDeploymentHoweverItComes(t *testing.T) {
	whole := func(version string) any {
		return &fleet.BundleDeployment{ObjectMeta: metav1.ObjectMeta{
			Name: "web", ResourceVersion: version, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "hub"}},
		},
			Spec: fleet.BundleDeploymentSpec{
				DeploymentID: "id", StagedOptions: fleet.BundleDeploymentOptions{ServiceAccount: "staged"},
				Options: fleet.BundleDeploymentOptions{ServiceAccount: "used"},
			}}
	}
	want := &fleet.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Name: "web", ResourceVersion: "1"},
		Spec: fleet.BundleDeploymentSpec{DeploymentID: "id", Options: fleet.BundleDeploymentOptions{ServiceAccount: "used"}}}
	for way, comes := range map[string]func(*store) error{
		"a watch-list": func(s *store) error {
			o, err := s.Transformer()(whole("1"))
			return errors.Join(err, s.Replace([]any{o}, "1"))
		},
		"a list":                func(s *store) error { return s.Replace([]any{whole("1")}, "1") },
		"an event that adds":    func(s *store) error { return s.Add(whole("1")) },
		"an event that changes": func(s *store) error { return errors.Join(s.Replace([]any{whole("0")}, "0"), s.Update(whole("1"))) },
	} {
		s := newStore(func(string) {}, func(string) {})
		if err := comes(s); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, s.get("web")); diff != "" {
			t.Errorf("by %s (-want +got):\n%s", way, diff)
		}
	}
}

func TestOnlyTheFirstAttemptToWatchThatFailsForACauseIsLogged(t *testing.T) {
	s := &store{deleted: map[string]bool{}}
	for i, step := range []struct {
		cause         string
		resumed, news bool
	}{
		{"away", false, true}, {"away", false, false}, {"", true, false}, {"", false, false},
		{"away", false, true}, {"away", false, false}, {"broken", false, true}, {"away", false, false}, {"", true, false},
	} {
		if resumed, news := s.watchResult(step.cause, time.Unix(int64(i+1), 0)); resumed != step.resumed || news != step.news {
			t.Errorf("attempt %d: resumed %t, news %t", i, resumed, news)
		}
	}
}
