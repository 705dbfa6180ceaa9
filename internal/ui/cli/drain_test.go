package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/decision"
	"github.com/muster-fleet/muster/internal/fleet/membership"
)

// drained are the objects of a member with a placement of each kind.
func drained(kinds map[string]*placement.PlacementPolicy) (member *clusterv1beta1.MemberCluster, all []client.Object) {
	member = &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "edge"}}
	all = append(all, member)
	work := func(name, namespace string) *placement.Work {
		return &placement.Work{ObjectMeta: metav1.ObjectMeta{Namespace: membership.Namespace(member), Name: namespace + name + "-work",
			Labels: map[string]string{placement.LabelParentCRP: name, placement.LabelParentNamespace: namespace}}}
	}
	for name, policy := range kinds {
		crp := &placement.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: placement.PlacementSpec{Policy: policy}}
		crp.Status.Obstacles = []placement.Obstacle{{ClusterName: "free", Reason: "Outranked"}, {ClusterName: "off", Reason: "AgentLost"}}
		all = append(all, crp, work(name, ""))
	}
	return member, append(all, work("own", "shop"))
}

// answering is a hub that decides on evictions as said.
func answering(t *testing.T, objects []client.Object, decide func(hub client.Client, e *placement.ClusterResourcePlacementEviction)) (
	client.Client, *[]string) {
	t.Helper()
	evictions := &[]string{}
	hub := fake.NewClientBuilder().WithScheme(newAccess().scheme).WithObjects(objects...).
		WithStatusSubresource(&placement.ClusterResourcePlacementEviction{}, &placement.ClusterResourcePlacement{}).
		WithInterceptorFuncs(interceptor.Funcs{Create: func(
			ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption,
		) error {
			if err := c.Create(ctx, o, options...); err != nil {
				return err
			}
			e := o.(*placement.ClusterResourcePlacementEviction).DeepCopy()
			*evictions = append(*evictions, e.Spec.PlacementName+" of "+e.Spec.ClusterName+", drain "+e.Annotations[placement.AnnotationDrain])
			decide(c, e)
			return c.Status().Update(ctx, e)
		}}).Build()
	return hub, evictions
}

func says(e *placement.ClusterResourcePlacementEviction, kind string, status metav1.ConditionStatus, message string) {
	e.Status.Conditions = append(e.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: "R", Message: message})
}

func TestDrainMovesWhatCanMoveAndNamesTheRest(t *testing.T) {
	number := int32(1)
	pickN := &placement.PlacementPolicy{PlacementType: placement.PickN, NumberOfClusters: &number}
	kinds := map[string]*placement.PlacementPolicy{
		"moves": pickN, "alone": pickN, "everywhere": nil, "named": {PlacementType: placement.PickFixed, ClusterNames: []string{"edge"}},
	}
	stays := []string{
		"everywhere: it picks all members (PickAll)", "named: it picks members by name (PickFixed): take edge out",
		"ResourcePlacement shop/own: evictions concern",
	}
	decides := func(hub client.Client, e *placement.ClusterResourcePlacementEviction) {
		if e.Spec.PlacementName == "alone" {
			says(e, placement.ConditionEvictionValid, metav1.ConditionFalse, "no other member qualifies")
			return
		}
		says(e, placement.ConditionEvictionValid, metav1.ConditionTrue, "")
		says(e, placement.ConditionEvictionExecuted, metav1.ConditionTrue, "")
		work := &placement.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-member-edge", Name: "moves-work"}}
		if err := hub.Delete(context.Background(), work); err != nil {
			t.Error(err)
		}
	}
	blocks := func(_ client.Client, e *placement.ClusterResourcePlacementEviction) {
		says(e, placement.ConditionEvictionValid, metav1.ConditionTrue, "")
		says(e, placement.ConditionEvictionExecuted, metav1.ConditionFalse, "the budget does not allow it")
	}
	for name, row := range map[string]struct {
		decide    func(client.Client, *placement.ClusterResourcePlacementEviction)
		timeout   time.Duration
		canceled  bool
		dryRun    bool
		code      int
		says      []string
		evictions int
		cordoned  bool
	}{
		"drains": {
			decide: decides, timeout: time.Minute, says: append([]string{
				"is cordoned", "moves has left", "alone: no other member qualifies", "is drained: 1 placements moved", "muster uncordon edge",
			}, stays...), evictions: 2, cordoned: true,
		},
		"waits for a budget": {
			decide: blocks, timeout: time.Second, code: exitTimedOut, evictions: 2, cordoned: true,
			says: []string{"waits: the budget does not allow it", "stays cordoned", "To go on: muster drain edge; to end it: muster uncordon edge"},
		},
		"is interrupted": {
			decide: blocks, timeout: time.Minute, canceled: true, code: exitFailed, evictions: 2, cordoned: true,
			says: []string{"interrupted; MemberCluster edge stays cordoned", "Evictions that the hub has begun continue"},
		},
		"starts only": {decide: blocks, evictions: 2, cordoned: true, says: append([]string{
			"the hub moves 2 placements. To follow them: muster drain edge",
		}, stays...)},
		"is uncordoned meanwhile": {
			decide: func(hub client.Client, e *placement.ClusterResourcePlacementEviction) {
				member := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "edge"}}
				if err := decision.Uncordon.Write(context.Background(), hub, member); err != nil {
					t.Error(err)
				}
				blocks(hub, e)
			},
			timeout: time.Minute, code: exitFailed, evictions: 2,
			says: []string{"MemberCluster edge is no longer cordoned, so the drain has stopped"},
		},
		"only looks": {dryRun: true, says: append([]string{"edge would be cordoned", "moves would move to free."}, stays...)},
	} {
		t.Run(name, func(t *testing.T) {
			member, objects := drained(kinds)
			hub, evictions := answering(t, objects, row.decide)
			var out bytes.Buffer
			c := &changer{IOStreams: genericiooptions.IOStreams{Out: &out}, access: newAccess(), timeout: row.timeout, progress: newProgress(&out)}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if row.canceled {
				time.AfterFunc(time.Second, cancel)
			}
			if err := hub.Get(ctx, client.ObjectKeyFromObject(member), member); err != nil {
				t.Fatal(err)
			}
			do := c.drain
			if row.dryRun {
				do = c.planDrain
			}
			err := do(ctx, hub, member)
			if err != nil {
				out.WriteString(err.Error())
			}
			if code := ExitCode(err); code != row.code {
				t.Errorf("exit code %d: %v", code, err)
			}
			for _, words := range row.says {
				if !strings.Contains(out.String(), words) {
					t.Errorf("it does not say %q:\n%s", words, out.String())
				}
			}
			if len(*evictions) != row.evictions {
				t.Errorf("evictions: %v", *evictions)
			}
			for _, e := range *evictions {
				if !strings.HasSuffix(e, "of edge, drain true") {
					t.Errorf("an eviction of another member, or without the mark: %s", e)
				}
			}
			if err := hub.Get(t.Context(), client.ObjectKeyFromObject(member), member); err != nil || membership.Cordoned(member) != row.cordoned {
				t.Errorf("it is cordoned: %t, %v", membership.Cordoned(member), err)
			}
			progress := membership.DrainOf(member)
			if stopped := name == "waits for a budget" || name == "is interrupted"; (progress != nil) != stopped ||
				stopped && (!progress.Stopped || progress.Total != 2 || progress.Moved != 0) {
				t.Errorf("its progress is %+v", progress)
			}
			if membership.Drained(member) != (name == "drains") {
				t.Errorf("it is marked as drained: %t", membership.Drained(member))
			}
		})
	}
}
