package membernamespace

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// NameProblem returns the reason why no Cluster with this name can have a member namespace, with a
// better name; "" if it can.
func NameProblem(name, namespace string) string {
	if len(validation.IsDNS1123Label(namespace)) == 0 {
		return ""
	}
	return fmt.Sprintf("a Cluster cannot be called %s: its namespace would be %s, and names of namespaces hold only lower case letters, "+
		"digits and dashes; create it under another name, such as %s", kube.Clip(name, maxShownKey), kube.Clip(namespace, maxShownKey),
		naming.CleanCluster(name))
}
