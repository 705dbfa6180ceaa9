package hub_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-fleet/muster/internal/testkube"
)

// TestAFullDiskUnderTheHubsEtcdLosesNothing fills the disk of the hub's etcd, which ends with it.
// The API server goes on without: it answers errors. It takes minutes: members are silent for
// longer than it takes to lose one, and etcd starts again.
func TestAFullDiskUnderTheHubsEtcdLosesNothing(t *testing.T) {
	t.Parallel()
	cluster := turnApart(t, "disk", "--restart-etcd")
	fill, free := testkube.SmallDisk(t, cluster.Name(), "400m")
	s := newProcess(t, cluster, "", "--leader-elect=true").survivors()
	fill()
	s.dies.stop()
	store := func(size int) error {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		return s.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.workspace, GenerateName: "filling-"}, Data: map[string]string{"a": strings.Repeat("x", size)},
		})
	}
	s.eventually("the API server can store nothing", func() error {
		if store(1<<19) == nil || store(1) == nil { // a slow answer to the large one is no full disk
			return errors.New("it still can")
		}
		return nil
	})
	s.say("does not answer", "deadline", "Client.Timeout exceeded", "stream error") // it depends on the request
	<-time.After(4 * period)
	free()
	s.areWell(time.Now())
}
