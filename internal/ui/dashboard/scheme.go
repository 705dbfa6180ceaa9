package dashboard

import (
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	musterv1alpha1 "github.com/muster-fleet/muster/api/muster/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// scheme has the kinds in the views, and the reviews of visitors.
var scheme = newScheme()

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		authenticationv1.AddToScheme, authorizationv1.AddToScheme, coordinationv1.AddToScheme, corev1.AddToScheme,
		fleet.AddToScheme, clusterv1beta1.AddToScheme, placement.AddToScheme, musterv1alpha1.AddToScheme,
	} {
		if err := add(s); err != nil {
			panic(err) // two types of one name: a mistake in this program
		}
	}
	return s
}
