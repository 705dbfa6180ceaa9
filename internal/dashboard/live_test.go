package dashboard

import (
	"context"
	"errors"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// TestAPageIsLoadedAgainIfAProblemEndsBeforeItIsLive would have it say for ever that it may not be what is so now.
func TestAPageIsLoadedAgainIfAProblemEndsBeforeItIsLive(t *testing.T) {
	ctx := context.Background()
	s := &Server{roll: newRoll()}
	all := &visitor{renewed: time.Now(), rights: map[authorizationv1.ResourceAttributes]bool{}}
	for _, resource := range []string{clusters, memberClusters} {
		s.roll.reset(resource)
		all.rights[authorizationv1.ResourceAttributes{Verb: "list", Group: kinds[resource].group, Resource: resource}] = true
	}
	s.roll.put(clusters, &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "web"}})
	everything, err := queryOf(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, lookers := range map[string]func(have string) looker{
		"tiles":  func(have string) looker { return s.lookAtTiles(everything, have, all) },
		"member": func(have string) looker { return s.lookAt(have, all, "fleet/web", clusters, memberClusters) },
	} {
		t.Run(name, func(t *testing.T) {
			shown := func() string {
				entries, stale, err := s.entries(ctx, all, clusters, memberClusters)
				if err != nil {
					t.Fatal(err)
				}
				return digestOf(entries, stale)
			}
			s.roll.fail(memberClusters, errors.New("no answer"))
			whileItIs := shown()
			s.roll.fail(memberClusters, nil)
			look := lookers(whileItIs)
			if c, err := look(ctx); err != nil || c != reload {
				t.Errorf("it is sent %v, %v", c, err)
			}
			if c, err := look(ctx); err != nil || c != nil {
				t.Errorf("it is sent %v, %v, although nothing is different", c, err)
			}
			if c, err := lookers(shown())(ctx); err != nil || c != nil {
				t.Errorf("what shows it all is sent %v, %v", c, err)
			}
		})
	}
}
