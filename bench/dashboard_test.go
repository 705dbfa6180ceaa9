package bench

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/bench/rig"
	"github.com/muster-fleet/muster/internal/testbrowser"
)

// BenchmarkDashboard measures a viewer's wait for a fleet of 1,000 and of 10,000 Clusters, each
// with its registration request. It also measures the bytes sent to the browser, the time until a
// change reaches 50 browsers, and the memory. No hub runs. The ceiling of a change is the time
// until a watch of the API server has it.
func BenchmarkDashboard(b *testing.B) {
	const viewers = 50
	r := newRig(b)
	r.end(r.hub)
	of := fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: r.workspace, Labels: map[string]string{"env": "prod", "region": "eu"}},
		Status: fleet.ClusterStatus{
			Conditions: []fleet.Condition{{Type: fleet.ConditionReady, Status: corev1.ConditionTrue, LastTransitionTime: "2026-11-24T10:00:00Z"}},
			Display:    fleet.ClusterDisplay{ReadyNodes: "3/3", ReadyBundles: "2/2"}, Agent: fleet.AgentStatus{
				LastSeen: metav1.Now(), KubernetesVersion: "v1.36.3", Version: "v0.1.0",
			},
		}}
	delays := clusterv1beta1.HeartbeatDelay{Hour: metav1.NewTime(time.Now().Truncate(time.Hour))}
	for hour := range clusterv1beta1.DelayHours {
		delays.Seconds = append(delays.Seconds, int32(hour%5))
	}
	of.Status.HeartbeatDelay = &delays
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(r.ceiling(), "ceiling-writes/s")
	made := 0
	for _, members := range []int{1_000, 10_000} {
		const writers = 32
		begun := made
		r.each(writers, func(first int) error {
			for n := begun + first; n < members; n += writers {
				name := fmt.Sprintf("edge-%05d", n)
				if err := errors.Join(r.duplicate(of, name), r.letIn(name)); err != nil {
					return err
				}
			}
			return nil
		})
		made = members
		free, err := net.Listen("tcp", "127.0.0.1:0")
		r.check(err)
		address := "http://" + free.Addr().String()
		r.check(free.Close())
		served := r.process("muster-hub", "dashboard", "--kubeconfig", filepath.Join(r.cluster.Dir, "kubeconfig"),
			"--bind-address", free.Addr().String())
		token := r.cluster.Account(b, "dashboard-viewer", "cluster-admin")
		r.await("the dashboard has read the fleet", func() bool {
			response, err := http.Get(address + "/readyz")
			if err != nil {
				return false
			}
			response.Body.Close()
			return response.StatusCode == http.StatusOK
		})
		say := func(metric string, value float64) { b.ReportMetric(value, fmt.Sprintf("%s-of-%d", metric, members)) }
		var took []time.Duration
		var page string
		for range 5 {
			begun := time.Now()
			var sent int
			page, sent = r.page(address+"/", token)
			took = append(took, time.Since(begun))
			say("page-kB", float64(sent)/1000)
		}
		if !strings.Contains(page, fmt.Sprintf("%d members", members)) {
			b.Fatalf("the page does not show %d members", members)
		}
		say("page-ms", float64(rig.Percentile(took, 0.5).Milliseconds()))
		begunRequests := time.Now()
		requests, sent := r.page(address+"/registration", token)
		say("requests-ms", float64(time.Since(begunRequests).Milliseconds()))
		say("requests-kB", float64(sent)/1000)
		if !strings.Contains(requests, fmt.Sprintf("%d Granted", members)) {
			b.Fatalf("the page does not count %d requests", members)
		}
		say("first-paint-ms", r.firstPaint(address, token))
		wall, _ := r.page(address+"/?view=wall", token) // a table is loaded again
		p50, last, ceiling := r.changes(address, token, wall, viewers)
		say("change-ms", float64(p50.Milliseconds()))
		say("change-last-ms", float64(last.Milliseconds()))
		say("ceiling-change-ms", float64(ceiling.Milliseconds()))
		say("memory-MiB", r.rss(served))
		say("memory-of-its-own-MiB", r.memory(served, "RssAnon:")) // without the pages of the program's file
		r.end(served)
	}
}

// letIn creates the granted registration request of a Cluster, as large as an agent's.
func (r *testRig) letIn(cluster string) error {
	ctx := context.Background()
	one := &fleet.ClusterRegistration{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: r.workspace, Name: "request-" + cluster, Annotations: map[string]string{
				"muster/requester": "system:serviceaccount:" + r.workspace + ":token",
			},
		},
		Spec: fleet.ClusterRegistrationSpec{ClientID: cluster, ClientRandom: strings.Repeat("r", 64),
			ClusterLabels: map[string]string{"env": "prod", "region": "eu"},
			AnswerKey:     bytes.Repeat([]byte{1}, 32), AgentKey: bytes.Repeat([]byte{1}, 32), Signature: bytes.Repeat([]byte{1}, 64)},
	}
	if err := r.Create(ctx, one); err != nil {
		return err
	}
	now := metav1.Now()
	one.Status = fleet.ClusterRegistrationStatus{
		State: fleet.RegistrationGranted, Granted: true, GrantedAt: &now, ClusterName: cluster,
		Reason: "Granted", Message: "the credential was issued",
	}
	return r.Status().Update(ctx, one)
}

// lookOn tells of each time that a browser is sent tiles, until the context ends.
func lookOn(ctx context.Context, address, token string, seen chan<- time.Time) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", address, response.Status)
	}
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "event: tiles") {
			seen <- time.Now()
		}
	}
	return lines.Err()
}

// page is the text of a page, and how many bytes of it are sent.
func (r *testRig) page(address, token string) (text string, sent int) {
	request, err := http.NewRequest(http.MethodGet, address, nil)
	r.check(err)
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Accept-Encoding", "gzip") // so that it is not unpacked on the way
	response, err := http.DefaultClient.Do(request)
	r.check(err)
	defer response.Body.Close()
	packed, err := io.ReadAll(response.Body)
	r.check(err)
	plain, err := gzip.NewReader(bytes.NewReader(packed))
	r.check(err)
	all, err := io.ReadAll(plain)
	r.check(err)
	return string(all), len(packed)
}

// firstPaint is after how many milliseconds a browser shows something of the fleet: the median of
// five; 0 without a browser.
func (r *testRig) firstPaint(address, token string) float64 {
	program := testbrowser.Program()
	if program == "" {
		r.b.Log("there is no Chromium on this machine, so nothing is painted")
		return 0
	}
	ctx, end := chromedp.NewExecAllocator(context.Background(),
		append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox)...)
	defer end()
	ctx, end = chromedp.NewContext(ctx)
	defer end()
	r.check(chromedp.Do(ctx, chromedp.Navigate(address+"/sign-in"), chromedp.SetValue("[name=token]", token), chromedp.Click("main button"),
		chromedp.WaitVisible("#summary")))
	var took []time.Duration
	for range 5 {
		r.check(chromedp.Do(ctx, chromedp.Navigate(address+"/"), chromedp.WaitVisible("#summary")))
		ms, err := chromedp.Run(ctx, chromedp.Poll[float64](`performance.getEntriesByName("first-contentful-paint")[0]?.startTime`))
		r.check(err)
		took = append(took, time.Duration(ms*float64(time.Millisecond)))
	}
	slices.Sort(took)
	return float64(rig.Percentile(took, 0.5).Milliseconds())
}

// changes has some browsers watch the fleet and changes a Cluster ten times. It returns
// after how long a change was with a browser, in the median and at the latest, and with a
// watch of the API server.
func (r *testRig) changes(address, token, page string, viewers int) (p50, last, ceiling time.Duration) {
	ctx, end := context.WithCancel(context.Background())
	defer end()
	live := regexp.MustCompile(`data-live="([^"]+)"`).FindStringSubmatch(page)
	if live == nil {
		r.b.Fatal("the page has no changes")
	}
	to, err := url.Parse(address + strings.ReplaceAll(live[1], "&amp;", "&"))
	r.check(err)
	seen, ended := make(chan time.Time, viewers), make(chan error, viewers)
	for range viewers {
		go func() { ended <- lookOn(ctx, to.String(), token, seen) }()
	}
	watching, err := r.as(token).Watch(ctx, &fleet.ClusterList{})
	r.check(err)
	defer watching.Stop()
	time.Sleep(2 * time.Second) // until the watch has told of all that there is
	for drained := false; !drained; {
		select {
		case <-watching.ResultChan():
		case <-seen:
		case <-time.After(time.Second):
			drained = true
		}
	}
	one := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: r.workspace, Name: "edge-00042"}}
	var took, raw []time.Duration
	for n := range 10 {
		r.check(r.Get(ctx, client.ObjectKeyFromObject(one), one))
		one.Status.Conditions[0].Status = []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionTrue}[n%2]
		one.Status.Conditions[0].Reason = []string{"AgentLost", ""}[n%2]
		begun := time.Now()
		r.check(r.Status().Update(ctx, one))
		<-watching.ResultChan()
		raw = append(raw, time.Since(begun))
		for range viewers {
			select {
			case at := <-seen:
				took = append(took, at.Sub(begun))
			case err := <-ended:
				r.b.Fatalf("a browser is not sent changes: %v", err)
			}
		}
	}
	slices.Sort(took)
	slices.Sort(raw)
	return rig.Percentile(took, 0.5), took[len(took)-1], rig.Percentile(raw, 0.5)
}
