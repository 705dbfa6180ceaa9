package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"time"

	"filippo.io/age"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/backup"
	"github.com/muster-fleet/muster/internal/fleet/standby"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

// lost is the phase that loses the hub. It is the last one, because the hub is elsewhere then.
const lost = "lost"

// lose measures the loss of the hub with its cluster. A backup is restored on a standby, and all
// members go there by themselves.
func (r *run) lose() {
	if r.options.kind != "native" {
		return // other agents need a new address
	}
	onto := testkube.Start(r.t, r.cluster.Name()+"-standby", "--default-limits")
	onto.InstallHub(r.t)
	settings := r.nameStandby(onto)
	kept := r.everywhere("kept")
	r.untilReady(kept)
	key, err := age.GenerateX25519Identity()
	r.check(err)
	var file bytes.Buffer
	begun := time.Now()
	_, err = backup.Take(r.ctx, r.cluster.Config, backup.Options{Recipients: []age.Recipient{key.Recipient()}}, &file)
	r.check(err)
	r.result.add("lost: backup", time.Since(begun).Seconds(), "s")
	r.result.add("lost: size of the backup", float64(file.Len())/(1<<10), "KiB")
	before := r.clusters()

	for _, h := range r.hubs {
		h.kill(false)
	}
	testkube.Discard(r.cluster.Name())
	begun = time.Now()
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(file.Bytes())), nil }
	restored, err := backup.Restore(r.ctx, onto.Config, open, backup.RestoreOptions{Identities: []age.Identity{key}})
	if err != nil {
		r.t.Fatalf("%v: %v", err, restored.Failed)
	}
	r.result.add("lost: restored after", time.Since(begun).Seconds(), "s")
	r.use(onto)
	r.configure(settings)
	r.hubs[0].run(r.t, kubeconfig(r.t, onto), strings.Fields(r.options.hubFlags))
	go r.supervise(r.hubs[0])
	r.arrive(begun, kept)
	after, same := r.clusters(), 0
	for clientID, name := range before {
		if after[clientID] == name {
			same++
		}
	}
	r.result.add("lost: Clusters kept", float64(same), "Clusters")
	r.result.add("lost: Clusters registered anew", float64(len(after)-same), "Clusters")
}

// arrive measures the way of all members to the standby since the loss of the hub, until a Bundle
// from before is ready on them.
func (r *run) arrive(since time.Time, kept *fleet.Bundle) {
	for _, share := range []struct {
		name string
		of   float64
	}{{"half of the members", 0.5}, {"99 %", 0.99}, {"all members", 1}} {
		r.eventually(share.name+" are at the standby", func() bool {
			_, s, err := r.leader()
			return err == nil && float64(s.members("Online")) >= share.of*float64(len(r.members))
		})
		r.result.add("lost: "+share.name+" at the standby after", time.Since(since).Seconds(), "s")
	}
	r.untilReady(kept)
	r.result.add("lost: the Bundle ready on all after", time.Since(since).Seconds(), "s")
	r.settled()
	if _, s, err := r.leader(); err == nil {
		r.result.add("lost: members Lost at the end", float64(s.members("Lost")), "members")
	}
}

// nameStandby gives the hub the address of a standby with a token, and waits until all members have
// stored them. It returns the settings of the hub.
func (r *run) nameStandby(onto testkube.Cluster) string {
	token, err := standbyToken(r.ctx, onto.Client(r.t))
	r.check(err)
	r.check(r.Create(r.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: naming.SystemNamespace, Name: standby.Secret,
		Labels: map[string]string{fleet.LabelManaged: "true"}}, StringData: map[string]string{standby.Key: token}}))
	settings, err := json.Marshal(map[string]any{
		"apiServerURL": r.cluster.Config.Host, "apiServerCA": string(r.cluster.Config.CAData), "agentTLSMode": "strict",
		"apiServerFallbacks": []any{map[string]any{"apiServerURL": onto.Config.Host, "apiServerCA": string(onto.Config.CAData),
			"tokenSecret": map[string]any{"name": standby.Secret}}},
	})
	r.check(err)
	r.configure(string(settings))
	took := r.eventually("all members have stored the token of the standby", func() bool {
		return !slices.ContainsFunc(r.members, func(m member) bool {
			secret, err := m.(*native).api.stored()
			return err != nil || !strings.Contains(string(secret.Data["hubAddresses"]), token)
		})
	})
	r.result.add("lost: all members know the standby after", took.Seconds(), "s")
	return string(settings)
}

// standbyToken creates the account of a standby, and issues a token, as muster hub standby-token
// does.
func standbyToken(ctx context.Context, there client.Client) (string, error) {
	account := standby.ServiceAccount(naming.SystemNamespace)
	if err := there.Create(ctx, account); err != nil {
		return "", err
	}
	return kube.RequestToken(ctx, there.SubResource("token"), account, standby.Life)
}

// configure replaces the settings of the hub.
func (r *run) configure(settings string) {
	configured := &corev1.ConfigMap{}
	r.check(r.Get(r.ctx, client.ObjectKey{Namespace: naming.SystemNamespace, Name: naming.HubConfigMap}, configured))
	configured.Data = map[string]string{"config": settings}
	r.check(r.Update(r.ctx, configured))
}

// clusters returns the names of all Clusters by their client IDs.
func (r *run) clusters() map[string]string {
	var list fleet.ClusterList
	r.check(r.List(r.ctx, &list, client.InNamespace(r.workspace)))
	names := map[string]string{}
	for i := range list.Items {
		names[list.Items[i].Spec.ClientID] = list.Items[i].Name
	}
	if len(names) != len(list.Items) {
		r.note("%d Clusters have %d client IDs", len(list.Items), len(names))
	}
	return names
}
