package delivery

import (
	"testing"

	"github.com/muster-fleet/muster/internal/naming"
)

func TestAnAgentKnowsBothFormsOfItsNamespace(t *testing.T) {
	labels := RecipientLabels("clusters/web", 2)
	for _, namespace := range []string{naming.MemberNamespaceAt(2, "clusters", "web"), naming.LongMemberNamespaceAt(2, "clusters", "web")} {
		if other := OtherRecipient(labels, namespace, "web"); other != "" {
			t.Errorf("what is in %s is for %s", namespace, other)
		}
	}
	for _, namespace := range []string{naming.LongMemberNamespaceAt(1, "clusters", "web"), naming.LongMemberNamespaceAt(2, "other", "web")} {
		if OtherRecipient(labels, namespace, "web") == "" {
			t.Errorf("what is in %s is for the member", namespace)
		}
	}
	if !Inherits(labels, naming.LongMemberNamespaceAt(1, "clusters", "web"), "web") ||
		Inherits(labels, naming.LongMemberNamespaceAt(2, "clusters", "web"), "web") {
		t.Errorf("the namespaces before are not known")
	}
}
