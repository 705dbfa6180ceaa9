package cause

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// podOf reads the status of a Pod.
func podOf(t *testing.T, status string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{}
	if err := yaml.UnmarshalStrict([]byte("status: "+status), pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

// long is the message of containerd for an image that its registry does not have.
const long = `rpc error: code = NotFound desc = failed to pull and unpack image "docker.io/shop/web:9": not found`

func TestThePodNamesItsCauseInTheWordsOfKubernetes(t *testing.T) {
	for name, test := range map[string]struct {
		status, want string
		severity     severity
	}{
		"an image that cannot be pulled": {
			`{containerStatuses: [{name: web, image: "docker.io/shop/web:9", state: {waiting: {reason: ErrImagePull, message: '` + long + `'}}}]}`,
			"container web: ErrImagePull: " + long, unstartable,
		},
		"an image that its message does not name": {
			`{containerStatuses: [{name: web, image: "web:9", state: {waiting: {reason: RegistryImageUnavailable, message: try again}}}]}`,
			`container web: RegistryImageUnavailable: image "web:9": try again`, unstartable,
		},
		"a missing Secret": {
			`{containerStatuses: [{name: web, image: i, state: {waiting: {reason: CreateContainerConfigError, message: 'secret "db" not found'}}}]}`,
			`container web: CreateContainerConfigError: secret "db" not found`, unstartable,
		},
		"a crash, with the last line that is not empty": {
			`{containerStatuses: [{name: web, image: i, restartCount: 4, state: {waiting: {reason: CrashLoopBackOff, message: back-off 40s}},
				lastState: {terminated: {exitCode: 3, reason: Error, message: "starting\nno such host: db\n\n"}}}]}`,
			"container web: CrashLoopBackOff: Error, exit code 3: no such host: db", crashing,
		},
		"a crash between two restarts has no secret in its line": {
			`{containerStatuses: [{name: web, image: i, state: {running: {}}, lastState: {terminated: {exitCode: 1, reason: Error,
				message: "cannot reach postgres://app:hunter2@db/shop with password=hunter2"}}}]}`,
			"container web: Error, exit code 1: cannot reach postgres://REDACTED@db/shop with password=REDACTED", crashing,
		},
		"too little memory": {
			`{containerStatuses: [{name: web, image: i, state: {waiting: {reason: CrashLoopBackOff}},
				lastState: {terminated: {exitCode: 137, reason: OOMKilled}}}]}`,
			"container web: CrashLoopBackOff: OOMKilled, exit code 137", crashing,
		},
		"an init container that fails explains the waiting ones": {
			`{initContainerStatuses: [{name: wait, image: i, state: {terminated: {exitCode: 2, reason: Error}}}],
				containerStatuses: [{name: web, image: i, state: {waiting: {reason: PodInitializing}}}]}`,
			"init container wait: Error, exit code 2", crashing,
		},
		"an image beside a crash: the image is worse": {
			`{containerStatuses: [{name: a, image: i, state: {terminated: {exitCode: 2, reason: Error}}},
				{name: b, image: i, state: {waiting: {reason: InvalidImageName, message: 'couldn''t parse i'}}}]}`,
			"container b: InvalidImageName: couldn't parse i", unstartable,
		},
		"no node": {
			`{conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: "0/3 nodes are available: 3 Insufficient cpu."}]}`,
			"Unschedulable: 0/3 nodes are available: 3 Insufficient cpu.", unschedulable,
		},
		"an eviction": {
			`{phase: Failed, reason: Evicted, message: "The node was low on resource: memory."}`,
			"Evicted: The node was low on resource: memory.", crashing,
		},
		"a container that is being created names no reason": {
			`{containerStatuses: [{name: web, image: i, state: {waiting: {reason: ContainerCreating}}}]}`, "", quiet,
		},
		"a container that ended well, beside one that runs": {
			`{containerStatuses: [{name: a, image: i, state: {terminated: {exitCode: 0, reason: Completed}}},
				{name: b, image: i, state: {running: {}}}]}`, "", quiet,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, is := findingOf(podOf(t, test.status))
			if !is || got.text != test.want || got.severity != test.severity {
				t.Errorf("%v, %d: %q, want %d: %q", is, got.severity, got.text, test.severity, test.want)
			}
		})
	}
}

func TestAPodThatIsWellIsNoCause(t *testing.T) {
	deleted := podOf(t, `{containerStatuses: [{name: a, image: i, state: {terminated: {exitCode: 143}}}]}`)
	deleted.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	for name, pod := range map[string]*corev1.Pod{
		"ready, after a crash": podOf(t, `{conditions: [{type: Ready, status: "True"}], containerStatuses: [{name: a, image: i, ready: true,
			lastState: {terminated: {exitCode: 1}}}]}`),
		"succeeded": podOf(t, `{phase: Succeeded}`),
		"deleted":   deleted,
	} {
		if got, is := findingOf(pod); is {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestTheClaimsOfAPodAreLookedAtWhileItWaits(t *testing.T) {
	pod := podOf(t, `{}`)
	pod.Name = "web-0"
	pod.Spec.Volumes = []corev1.Volume{
		{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}},
		{Name: "tmp", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}},
	}
	got, _ := findingOf(pod)
	if diff := cmp.Diff([]string{"data", "web-0-tmp"}, got.claims); diff != "" {
		t.Error(diff)
	}
	pod.Status = podOf(t, `{containerStatuses: [{name: a, image: i, state: {terminated: {exitCode: 1}}}]}`).Status
	if got, _ := findingOf(pod); got.claims != nil {
		t.Errorf("a Pod that runs waits for no claim: %v", got.claims)
	}
}

func TestTheWorstThreePodsWithDifferentTextsAreNamed(t *testing.T) {
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	got := worst([]finding{
		{severity: quiet, pod: "quiet", created: at(9)},
		{severity: quiet, pod: "another", created: at(8)},
		{severity: crashing, text: "old crash", created: at(1)},
		{severity: crashing, text: "new crash", created: at(5)},
		{severity: unschedulable, text: "no node"},
		{severity: unstartable, text: "no image", pod: types.UID("first"), created: at(3)},
		{severity: unstartable, text: "no image", pod: types.UID("second"), created: at(2)},
	})
	var texts []string
	for _, f := range got {
		texts = append(texts, f.text)
	}
	if diff := cmp.Diff([]string{"no image", "new crash", "old crash"}, texts); diff != "" {
		t.Error(diff)
	}
	if got[0].pod != "first" {
		t.Errorf("the newest Pod is the first: %s", got[0].pod)
	}
	got = worst([]finding{{severity: quiet, pod: "a", created: at(1)}, {severity: quiet, pod: "b", created: at(2)}})
	if len(got) != 1 || got[0].pod != "b" {
		t.Errorf("of Pods without a reason one is looked at: %+v", got)
	}
}

func TestTextsAreShortLines(t *testing.T) {
	if got := lastLine("a\x1b[31mb\tc\r\n" + strings.Repeat("x", 500)); len(got) > maxLine+len("...") {
		t.Errorf("a line of %d bytes", len(got))
	}
	if got := lastLine("one\n\x1b[31mtwo\t three\r\n \n"); got != "[31mtwo three" {
		t.Errorf("%q", got)
	}
	if got := lastLine("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----"); got != "REDACTED" {
		t.Errorf("%q", got)
	}
	for text, want := range map[string]string{
		`pods "web-7d9f8b6c5-x2x4z" is forbidden: exceeded quota: q`: `pods "web-*" is forbidden: exceeded quota: q`,
		`pods "web-x2x4z" is forbidden`:                              `pods "web-*" is forbidden`,
		`image "web-proxy" of web-0`:                                 `image "web-proxy" of web-0`,
	} {
		if got := withoutRandom(text, "web"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
