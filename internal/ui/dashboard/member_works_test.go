package dashboard

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
)

// countingWorks counts the Works that are read.
type countingWorks struct {
	client.Client
	read int
}

func (c *countingWorks) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	err := c.Client.List(ctx, list, options...)
	if works, ok := list.(*placement.WorkList); ok {
		c.read += len(works.Items)
	}
	return err
}

func TestThePageOfAMemberReadsItsWorksOnce(t *testing.T) {
	r := newRig(t)
	mc := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "works-once"}, Spec: clusterv1beta1.MemberClusterSpec{
		Identity: rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "edge"}}}
	r.check(r.Create(t.Context(), mc))
	now := metav1.Now()
	mc.Status.Conditions = []metav1.Condition{
		{Type: clusterv1beta1.ConditionJoined, Status: metav1.ConditionTrue, Reason: "Joined", LastTransitionTime: now},
		{Type: clusterv1beta1.ConditionHealthy, Status: metav1.ConditionTrue, Reason: "Healthy", LastTransitionTime: now}}
	r.check(r.Status().Update(t.Context(), mc))
	member := membernamespace.OfMemberCluster(mc)
	_, _, err := member.CreateNamespace(t.Context(), r.Client, r.Client)
	r.check(err)
	namespace := member.Namespace
	const most = 25 // more than a page
	for i := range most {
		work := &placement.Work{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("work-%02d", i)},
			Spec: placement.WorkSpec{Workload: placement.WorkloadTemplate{
				Manifests: []placement.Manifest{{
					RawExtension: runtime.RawExtension{
						Object: &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Name: "c"}},
					},
				}}}}}
		r.check(r.Create(t.Context(), work))
		if i == 0 {
			work.Status.Conditions = []metav1.Condition{{
				Type: placement.ConditionApplied, Status: metav1.ConditionFalse, Reason: "AppliedManifestFailed", Message: "a quota is full",
				LastTransitionTime: now,
			}}
			r.check(r.Status().Update(t.Context(), work))
		}
	}
	s, all := remembered()
	counting := &countingWorks{Client: r.Client}
	all.Client = counting
	page := func(tab string) string {
		counting.read = 0
		asked, answered := httptest.NewRequest(http.MethodGet, "/members/works-once?tab="+tab, nil), httptest.NewRecorder()
		asked.SetPathValue("name", mc.Name)
		r.check(s.member(answered, asked, all))
		if counting.read != most {
			t.Errorf("the part %s reads %d Works, of which there are %d", tab, counting.read, most)
		}
		return answered.Body.String()
	}
	if why := page("overview"); !strings.Contains(why, "a quota is full") {
		t.Errorf("it shows\n%s", why)
	}
	deliveries, tree, _ := strings.Cut(page("deliveries"), `id="tree"`)
	if strings.Count(tree, "Work work-") != most || !strings.Contains(tree, "a quota is full") {
		t.Errorf("the objects on the hub are\n%s", tree)
	}
	if first := strings.Index(deliveries, "a quota is full"); first < 0 || first > strings.Index(deliveries, "work-01") {
		t.Errorf("the delivery with a problem is not the first:\n%s", deliveries)
	}
}
