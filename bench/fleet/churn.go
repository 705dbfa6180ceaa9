package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// lasting are the kinds with objects that outlast their member for some time: audit entries,
// finished requests, events.
var lasting = []string{"auditentries", "clusterregistrations", "events"}

// counted bounds the time until the API server counts its objects again: a minute, and up to 1.2
// more.
const counted = 140 * time.Second

// churn is a time of random joins, leaves, and changes of labels and Bundles. Afterwards the fleet
// is as large as before, and nothing may have grown.
type churn struct {
	*run
	random  *rand.Rand
	next    int
	bundles []*fleet.Bundle
	leaving sync.WaitGroup
	counts  map[string]int
}

func (r *run) churn() {
	if r.options.churn == 0 || r.options.kind != "native" {
		return
	}
	size := len(r.members)
	r.settled()
	time.Sleep(counted)
	before := r.now()
	//nolint:gosec // to be repeated by its seed
	c := &churn{run: r, random: rand.New(rand.NewPCG(r.options.seed, 0)), next: size, counts: map[string]int{}}
	r.note("churn: go on with -seed %d to repeat it", r.options.seed)
	for end := time.Now().Add(r.options.churn); time.Now().Before(end); time.Sleep(time.Duration(c.random.IntN(1000)) * time.Millisecond) {
		c.step(size)
	}
	for len(r.members) > size {
		c.leave()
	}
	for len(r.members) < size {
		c.join()
	}
	for len(c.bundles) > 0 {
		c.deleteBundle()
	}
	c.leaving.Wait()
	r.eventually("all members are there after the churn", func() bool {
		_, s, err := r.leader()
		return err == nil && s.members("Online") == size && s.sum("muster_hub_members") == float64(size)
	})
	r.settled()
	time.Sleep(counted)
	after := r.now()
	r.note("churn: %v in %s", c.counts, r.options.churn)
	r.compare(before, after)
}

// step makes one random change.
func (c *churn) step(size int) {
	switch what := c.random.IntN(10); {
	case what < 2 && len(c.members) < size+size/10:
		c.join()
	case what < 4 && len(c.members) > size-size/10:
		c.leave()
	case what < 8:
		c.label()
	case len(c.bundles) < 5:
		c.createBundle()
	case what == 8:
		c.deleteBundle()
	default:
		c.changeBundle()
	}
}

func (c *churn) join() {
	c.counts["joins"]++
	m := c.newMember(c.next)
	c.next++
	c.members = append(c.members, m)
	c.check(m.start())
}

func (c *churn) leave() {
	c.counts["leaves"]++
	i := c.random.IntN(len(c.members))
	m := c.members[i]
	c.members = slices.Delete(c.members, i, i+1)
	c.leaving.Go(func() {
		c.eventually(m.record()+" has joined", m.joined)
		c.check(client.IgnoreNotFound(c.Delete(c.ctx, c.recordOf(m))))
		c.eventually(m.record()+" has left", func() bool { return c.Get(c.ctx, client.ObjectKeyFromObject(c.recordOf(m)), c.recordOf(m)) != nil })
		m.silence()
	})
}

func (c *churn) label() {
	c.counts["labels"]++
	m := c.members[c.random.IntN(len(c.members))]
	if m.joined() {
		c.check(client.IgnoreNotFound(c.Patch(c.ctx, c.recordOf(m), mergePatch(`{"metadata":{"labels":{"churn":"%d"}}}`, c.random.IntN(3)))))
	}
}

func (c *churn) createBundle() {
	c.counts["Bundles"]++
	b := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: c.workspace, GenerateName: "churn-"}, Spec: fleet.BundleSpec{
		Resources: []fleet.BundleResource{{Name: "cm.yaml", Content: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"}},
		Targets: []fleet.BundleTarget{{
			ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"churn": fmt.Sprint(c.random.IntN(3))}},
		}},
	}}
	c.check(c.Create(c.ctx, b))
	c.bundles = append(c.bundles, b)
}

func (c *churn) changeBundle() {
	c.counts["changes of Bundles"]++
	b := c.bundles[c.random.IntN(len(c.bundles))]
	c.check(c.Patch(c.ctx, b,
		mergePatch(
			`{"spec":{"resources":[{"name":"cm.yaml","content":"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {n: \"%d\"}\n"}]}}`,
			c.random.Int32(),
		)))
}

func (c *churn) deleteBundle() {
	i := c.random.IntN(len(c.bundles))
	c.check(c.Delete(c.ctx, c.bundles[i]))
	c.bundles = slices.Delete(c.bundles, i, i+1)
}

// compare adds the figures before and after the churn, and the number of leftover objects.
func (r *run) compare(before, after state) {
	for _, figure := range []struct {
		what, metric string
		divided      float64
		unit         string
	}{
		{"goroutines of the hub", "go_goroutines", 1, "goroutines"},
		{"objects in the hub's heap", "go_memstats_heap_objects", 1000, "thousand"},
		{"memory of the hub (RSS)", "process_resident_memory_bytes", 1 << 20, "MiB"},
		{"open files of the hub", "process_open_fds", 1, "files"},
	} {
		r.result.add("churn: "+figure.what+", before", before.hub.sum(figure.metric)/figure.divided, figure.unit)
		r.result.add("churn: "+figure.what+", after", after.hub.sum(figure.metric)/figure.divided, figure.unit)
	}
	r.result.add("churn: watches of the API server, before", before.api.sum("apiserver_longrunning_requests"), "watches")
	r.result.add("churn: watches of the API server, after", after.api.sum("apiserver_longrunning_requests"), "watches")
	objects := func(s samples) map[string]float64 {
		return s.by("apiserver_resource_objects", func(label func(string) string) string { return label("resource") })
	}
	was, grown := objects(before.api), 0.0
	for kind, count := range objects(after.api) {
		if count == was[kind] {
			continue
		}
		r.note("churn: %.0f %s before, %.0f after", was[kind], kind, count)
		if !slices.Contains(lasting, kind) {
			grown += max(0, count-was[kind])
		}
	}
	r.result.add("churn: objects left over", grown, "objects")
}

func mergePatch(text string, value any) client.Patch {
	return client.RawPatch(types.MergePatchType, fmt.Appendf(nil, text, value))
}
