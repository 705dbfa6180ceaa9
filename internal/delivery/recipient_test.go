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
		{"what is a Cluster's own", RecipientLabels("clusters/a", 0), of, "a", ""},
		{"what is a Cluster's own, with a long name", RecipientLabels("clusters/"+long, 0), naming.MemberNamespace("clusters", long), long, ""},
		{"what is another Cluster's", RecipientLabels("clusters/b", 0), of, "a", "Cluster clusters/b"},
		{"what is that of a Cluster of the same name in another workspace", RecipientLabels("others/a", 0), of, "a", "Cluster others/a"},
		{"what says only half", map[string]string{fleet.LabelCluster: "a"}, of, "a", "Cluster /a"},
		{"what is a MemberCluster's", RecipientLabels("m", 0), of, "a", "MemberCluster m"},
		{"what is a MemberCluster's own", RecipientLabels("m", 0), naming.MemberClusterNamespace("m"), "m", ""},
		{
			"what is a Cluster's, at a MemberCluster", RecipientLabels("clusters/m", 0), naming.MemberClusterNamespace("m"),
			"m", "Cluster clusters/m",
		},
		{"what an older hub wrote", nil, of, "a", ""},
		{"what is a Cluster's own after it was revoked", RecipientLabels("clusters/a", 2), naming.MemberNamespaceAt(2, "clusters", "a"), "a", ""},
		{"what is a MemberCluster's own after it was revoked", RecipientLabels("m", 1), naming.MemberClusterNamespaceAt(1, "m"), "m", ""},
		{
			"what was for a Cluster before it was revoked", RecipientLabels("clusters/a", 0), naming.MemberNamespaceAt(1, "clusters", "a"),
			"a", "Cluster clusters/a",
		},
		{"what is for a Cluster after it was revoked, in the namespace before", RecipientLabels("clusters/a", 1), of, "a", "Cluster clusters/a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := OtherRecipient(c.labels, c.namespace, c.report); got != c.want {
				t.Errorf("it is for %q, want %q", got, c.want)
			}
		})
	}
}

func TestAMemberInheritsOnlyItsOwnNamespacesOfBeforeARevocation(t *testing.T) {
	long := "a-name-that-is-so-long-that-no-label-takes-it-whole-and-which-therefore-ends-in-a-digest"
	for _, c := range []struct {
		name              string
		labels            map[string]string
		namespace, report string
		want              bool
	}{
		{"the one just before", RecipientLabels("clusters/a", 2), naming.MemberNamespaceAt(1, "clusters", "a"), "a", true},
		{"the first one", RecipientLabels("clusters/a", 2), naming.MemberNamespace("clusters", "a"), "a", true},
		{"that of a long name", RecipientLabels("clusters/"+long, 1), naming.MemberNamespace("clusters", long), long, true},
		{"that of a MemberCluster", RecipientLabels("m", 1), naming.MemberClusterNamespace("m"), "m", true},
		{"its present one", RecipientLabels("clusters/a", 2), naming.MemberNamespaceAt(2, "clusters", "a"), "a", false},
		{"that of another Cluster", RecipientLabels("clusters/a", 2), naming.MemberNamespace("clusters", "b"), "a", false},
		{"anything, if it was never revoked", RecipientLabels("clusters/a", 0), naming.MemberNamespace("clusters", "a"), "a", false},
		{"anything, if no labels say so", nil, naming.MemberNamespace("clusters", "a"), "a", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Inherits(c.labels, c.namespace, c.report); got != c.want {
				t.Errorf("it inherits: %t, want %t", got, c.want)
			}
		})
	}
}
