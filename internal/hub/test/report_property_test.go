package hub_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
)

// TestAReportMayHoldTheCertificateAuthorityOfItsCluster plays KubeFleet's agent with a property
// provider. Values that are too large together are refused by the hub, which says so.
func TestAReportMayHoldTheCertificateAuthorityOfItsCluster(t *testing.T) {
	const name = "k8s.io/cluster-certificate-authority-data"
	f := newFixture(t)
	m := f.joined("authority")
	reports := func(name string, bytes int) error {
		var report clusterv1beta1.InternalMemberCluster
		if err := m.agent.Get(context.Background(), client.ObjectKey{Namespace: m.namespaceName(), Name: m.name}, &report); err != nil {
			return err
		}
		if report.Status.Properties == nil {
			report.Status.Properties = map[string]clusterv1beta1.PropertyValue{}
		}
		report.Status.Properties[name] = clusterv1beta1.PropertyValue{Value: strings.Repeat("x", bytes), ObservationTime: metav1.Now()}
		return m.agent.Status().Update(context.Background(), &report)
	}
	for _, bytes := range []int{2 << 10, 16 << 10} {
		m.eventually("the agent reports", func() error { return reports(name, bytes) })
		m.eventually("the record shows it", func() error {
			if got := len(m.record().Status.Properties[name].Value); got != bytes {
				return fmt.Errorf("it has %d bytes", got)
			}
			return nil
		})
	}
	f.tooLarge("a value of more than 16 KiB", reports(name, 16<<10+1))
	for i := range 16 {
		m.eventually("the agent reports more", func() error { return reports(fmt.Sprintf("example.com/ca-%d", i), 16<<10) })
	}
	m.until("Supported", metav1.ConditionFalse, "ReportTooLarge")
	if healthy := meta.FindStatusCondition(m.record().Status.Conditions, "Healthy"); healthy.Status != metav1.ConditionTrue {
		t.Errorf("the member is %+v", healthy)
	}
}
