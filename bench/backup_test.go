package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"filippo.io/age"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

// BenchmarkBackup measures the cost of a backup of 1,000 Clusters and 100 Bundles. It also measures
// the time of a restore on an empty control plane, until the hub there has prepared all of them.
// The Clusters are copies of a real agent's Cluster.
func BenchmarkBackup(b *testing.B) {
	const members, bundles = 1000, 100
	r := newRig(b)
	values, _ := r.token("new-token")
	agent := r.process("muster-agent", "--kubeconfig", filepath.Join(r.cluster.Dir, "kubeconfig"), "--namespace", r.member(values, "copied"),
		"--metrics-bind-address", "0", "--health-probe-bind-address", "0")
	r.until(time.Now(), "copied", func(c *fleet.Cluster) bool { return !c.Status.Agent.LastSeen.IsZero() })
	r.end(agent)
	r.end(r.hub)
	var clusters fleet.ClusterList
	r.check(r.List(context.Background(), &clusters, client.InNamespace(r.workspace)))
	const writers = 32
	r.each(writers, func(first int) error {
		for n := first; n < members-1; n += writers {
			if err := r.duplicate(clusters.Items[0], fmt.Sprintf("copy-%05d", n)); err != nil {
				return err
			}
		}
		return nil
	})
	for n := range bundles {
		r.check(r.Create(context.Background(), &fleet.Bundle{
			ObjectMeta: metav1.ObjectMeta{Namespace: r.workspace, Name: fmt.Sprintf("app-%03d", n)},
			Spec: fleet.BundleSpec{Resources: []fleet.BundleResource{{
				Name: "app.yaml", Content: fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: app-%d}}", n),
			}}},
		}))
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(r.ceiling(), "ceiling-writes/s")
	r.backUpAndRestore(members)
}

// backUpAndRestore measures the three parts between a hub and its successor.
func (r *testRig) backUpAndRestore(members int) {
	key, err := age.GenerateX25519Identity()
	r.check(err)
	directory := r.b.TempDir()
	file, identity := filepath.Join(directory, "hub.age"), filepath.Join(directory, "key.txt")
	r.check(os.WriteFile(identity, []byte(key.String()), 0o600))
	testkube.Build(r.b, "muster")
	begun := time.Now()
	memory := r.muster("backup", "--output", file, "--recipient", key.Recipient().String())
	r.b.ReportMetric(time.Since(begun).Seconds(), "backup-s")
	r.b.ReportMetric(memory, "backup-MiB")
	info, err := os.Stat(file)
	r.check(err)
	r.b.ReportMetric(float64(info.Size())/1024, "file-KiB")

	target := testkube.Start(r.b, "benchmarkrestored")
	target.InstallHub(r.b)
	kubeconfig := filepath.Join(target.Dir, "kubeconfig")
	begun = time.Now()
	memory = r.musterOn(kubeconfig, "restore", file, "--identity", identity)
	r.b.ReportMetric(time.Since(begun).Seconds(), "restore-s")
	r.b.ReportMetric(memory, "restore-MiB")

	begun = time.Now()
	hub := r.process("muster-hub", "--kubeconfig", kubeconfig, "--namespace", naming.SystemNamespace,
		"--metrics-bind-address", "0", "--health-probe-bind-address", "0")
	defer r.end(hub)
	onto := target.Client(r.b)
	testkube.Eventually(r.b, "the hub has prepared all Clusters", func() error {
		var clusters fleet.ClusterList
		if err := onto.List(context.Background(), &clusters, client.InNamespace(r.workspace)); err != nil {
			return err
		}
		prepared := 0
		for i := range clusters.Items {
			if kube.FindCondition(clusters.Items[i].Status.Conditions, fleet.ConditionReady) != nil {
				prepared++
			}
		}
		if prepared < members {
			return fmt.Errorf("%d of %d", prepared, members)
		}
		return nil
	})
	r.b.ReportMetric(time.Since(begun).Seconds(), "prepared-s")
}
