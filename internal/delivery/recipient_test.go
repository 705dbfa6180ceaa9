package delivery

import (
	"testing"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/naming"
)

func TestAMemberKnowsWhatIsForAnother(t *testing.T) {
	long := "a-name-that-is-so-long-that-no-label-takes-it-whole-and-which-therefore-ends-in-a-digest"
	of := naming.MemberNamespace("clusters", "a")
	for _, c := range []struct {
		name              string
		labels            map[string]string
		namespace, report string
		want              string
	}{
		{"what is a Cluster's own", RecipientLabels("clusters/a"), of, "a", ""},
		{"what is a Cluster's own, with a long name", RecipientLabels("clusters/" + long), naming.MemberNamespace("clusters", long), long, ""},
		{"what is another Cluster's", RecipientLabels("clusters/b"), of, "a", "Cluster clusters/b"},
		{"what is that of a Cluster of the same name in another workspace", RecipientLabels("others/a"), of, "a", "Cluster others/a"},
		{"what says only half", map[string]string{fleet.LabelCluster: "a"}, of, "a", "Cluster /a"},
		{"what is a MemberCluster's", RecipientLabels("m"), of, "a", "MemberCluster m"},
		{"what is a MemberCluster's own", RecipientLabels("m"), naming.MemberClusterNamespace("m"), "m", ""},
		{"what is a Cluster's, at a MemberCluster", RecipientLabels("clusters/m"), naming.MemberClusterNamespace("m"), "m", "Cluster clusters/m"},
		{"what an older hub wrote", nil, of, "a", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := OtherRecipient(c.labels, c.namespace, c.report); got != c.want {
				t.Errorf("it is for %q, want %q", got, c.want)
			}
		})
	}
}
