package crash

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// web returns the Bundle of rollOut.
func (in *run) web() *fleet.Bundle {
	return &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: in.id, Name: "web"}}
}

// delivered returns the object of rollOut in a namespace of the member.
func (in *run) delivered(namespace string) (*corev1.ConfigMap, error) {
	object := &corev1.ConfigMap{}
	return object, in.on.Get(context.Background(), client.ObjectKey{Namespace: namespace + in.id, Name: "delivered"}, object)
}

// deploymentID returns the deployment ID of the Bundle of rollOut.
func (in *run) deploymentID() string {
	in.t.Helper()
	var d fleet.BundleDeployment
	in.check(in.get(&d, naming.MemberNamespace(in.id, naming.Cluster(in.id)), in.web().Name))
	return d.Spec.DeploymentID
}

// move gives a delivered Bundle another namespace on the member.
func (in *run) move() {
	in.t.Helper()
	bundle, before := in.web(), in.deploymentID()
	in.change(bundle, func() { bundle.Spec.DefaultNamespace = "moved-" + in.id })
	in.untilDelivered(bundle, before)
	in.eventually("the object is in the other namespace only", func() error {
		if _, err := in.delivered("moved-"); err != nil {
			return err
		}
		if _, err := in.delivered("web-"); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is where it was: %w", err)
		}
		return nil
	})
}

// clusterWithCorrection has a Bundle whose objects are corrected.
func (in *run) clusterWithCorrection() {
	in.t.Helper()
	in.clusterWithBundle()
	bundle, before := in.web(), in.deploymentID()
	in.change(bundle, func() { bundle.Spec.CorrectDrift = &fleet.CorrectDrift{Enabled: true} })
	in.eventually("the deployment is corrected", func() error {
		var d fleet.BundleDeployment
		if err := in.get(&d, naming.MemberNamespace(in.id, naming.Cluster(in.id)), bundle.Name); err != nil {
			return err
		}
		if d.Spec.CorrectDrift == nil || !d.Spec.CorrectDrift.Enabled || d.Spec.DeploymentID != before {
			return fmt.Errorf("its spec is %+v", d.Spec)
		}
		return nil
	})
}

// drift changes a delivered object on the member, and deletes it after the correction.
func (in *run) drift() {
	in.t.Helper()
	object, err := in.delivered("web-")
	in.check(err)
	in.check(in.on.Patch(context.Background(), object, client.RawPatch(types.MergePatchType, []byte(`{"data":{"of":"nobody"}}`))))
	in.untilCorrected()
	in.check(in.on.Delete(context.Background(), object))
	in.untilCorrected()
}

// untilCorrected waits until the delivered object is as in its Bundle.
func (in *run) untilCorrected() {
	in.t.Helper()
	in.eventually("the object is corrected", func() error {
		object, err := in.delivered("web-")
		if err != nil || object.Data["of"] != in.id {
			return fmt.Errorf("it has %v: %w", object.Data, err)
		}
		return nil
	})
}

// revokeAndReturn revokes a Cluster with a Bundle, takes this back, and lets its agent register
// again. The object stays meanwhile.
func (in *run) revokeAndReturn() {
	in.t.Helper()
	before, err := in.delivered("web-")
	in.check(err)
	cluster := in.cluster()
	in.change(cluster, func() {
		metav1.SetMetaDataAnnotation(&cluster.ObjectMeta, clusterv1beta1.AnnotationRevoked, "true")
	})
	in.untilReason(reasons.Revoked)
	in.change(cluster, func() { delete(cluster.Annotations, clusterv1beta1.AnnotationRevoked) })
	in.untilReason(reasons.IdentityMissing)
	in.untilForgotten()
	in.giveToken(in.hubFront)
	in.untilTrue(fleet.ConditionReady)
	in.eventually("the Bundle is ready on the member again", func() error {
		bundle := in.web()
		if err := in.Get(context.Background(), client.ObjectKeyFromObject(bundle), bundle); err != nil {
			return err
		}
		if of := bundle.Status.Summary; of.DesiredReady != 1 || of.Ready != 1 {
			return fmt.Errorf("its summary is %+v", of)
		}
		return nil
	})
	in.untilForgotten()
	if after, err := in.delivered("web-"); err != nil || after.UID != before.UID {
		in.t.Errorf("the object is %+v, and was %+v: %v", after.ObjectMeta, before.ObjectMeta, err)
	}
}

// untilForgotten waits until the agent has deleted its token, which it keeps for a while.
func (in *run) untilForgotten() {
	in.t.Helper()
	in.eventually("the token is forgotten", func() error {
		at := client.ObjectKey{Namespace: in.agentNamespace(), Name: naming.AgentBootstrapSecret}
		if err := in.on.Get(context.Background(), at, &corev1.Secret{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the Secret is there: %w", err)
		}
		return nil
	})
}

// untilReason waits until the Cluster is not ready for a reason.
func (in *run) untilReason(reason string) {
	in.t.Helper()
	in.eventually("the Cluster is "+reason, func() error {
		cluster := in.cluster()
		if err := in.Get(context.Background(), client.ObjectKeyFromObject(cluster), cluster); err != nil {
			return err
		}
		if c := kube.FindCondition(cluster.Status.Conditions, fleet.ConditionReady); c == nil || c.Reason != reason {
			return fmt.Errorf("its condition is %+v", c)
		}
		return nil
	})
}
