package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/naming"
)

// away is a client's error during a restart of the API server.
var away = &url.Error{Op: "Get", URL: "https://hub", Err: syscall.ECONNREFUSED}

func TestAWaitGoesOnWhileAnAPIServerIsAway(t *testing.T) {
	members := schema.GroupResource{Group: "cluster.kubernetes-fleet.io", Resource: "memberclusters"}
	forbidden, gone, denied := apierrors.NewForbidden(members, "edge", errors.New("no")), apierrors.NewNotFound(members, "edge"),
		final{errors.New("the hub denies it")}
	for name, row := range map[string]struct {
		looks          []error
		unseen, failed error
	}{
		"it is back before the end": {
			[]error{away, io.ErrUnexpectedEOF, apierrors.NewInternalError(errors.New("etcd")), nil}, nil, nil,
		},
		"it stays away":                       {[]error{away}, away, context.DeadlineExceeded},
		"it is back, and nothing is so yet":   {[]error{away, errNotYet}, nil, context.DeadlineExceeded},
		"the user may not look":               {[]error{forbidden}, nil, forbidden},
		"what is awaited is gone":             {[]error{away, gone}, away, gone},
		"what is awaited cannot come to pass": {[]error{denied}, nil, denied},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 4*lookEvery)
		p := newProgress(io.Discard)
		looks := row.looks
		unseen, err := await(ctx, &p, func(context.Context) (bool, error) {
			said := looks[0]
			if len(looks) > 1 {
				looks = looks[1:]
			}
			if errors.Is(said, errNotYet) {
				return false, nil
			}
			return said == nil, said
		})
		cancel()
		if !errors.Is(err, row.failed) || !errors.Is(unseen, row.unseen) {
			t.Errorf("%s: it ends with %v, and did not see for %v", name, err, unseen)
		}
	}
}

// errNotYet stands for a read before the goal is reached.
var errNotYet = errors.New("not yet")

func TestAMemberIsFollowedOverARestartOfItsHub(t *testing.T) {
	h := newAccess()
	record := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "edge"},
		Status: clusterv1beta1.MemberClusterStatus{Conditions: []metav1.Condition{
			{Type: clusterv1beta1.ConditionJoined, Status: metav1.ConditionTrue}}}}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: memberAgent.Namespace, Name: memberAgent.Name},
		Status: appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1}}
	builder := func() *fake.ClientBuilder {
		return fake.NewClientBuilder().WithScheme(h.scheme).WithObjects(record, deployment)
	}
	for _, awayFor := range []int{2, 1000} {
		asked := 0
		restarts := interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object,
			options ...client.GetOption) error {
			if asked++; asked <= awayFor {
				return away
			}
			return c.Get(ctx, key, o, options...)
		}}
		var out strings.Builder
		j := &joiner{
			access: h, IOStreams: genericiooptions.IOStreams{Out: &out}, name: "edge", timeout: 2 * time.Second, progress: newProgress(&out),
			joined: time.Now().Add(-time.Minute),
		}
		hub := &checked{access: h, Client: builder().WithInterceptorFuncs(restarts).Build(), config: &rest.Config{Host: "https://127.0.0.1:1"}}
		cluster := &checked{access: h, Client: builder().Build(), config: &rest.Config{Host: "https://127.0.0.1:1"}}
		ctx, cancel := context.WithTimeout(t.Context(), j.timeout)
		err := j.followMember(ctx, cluster, hub)
		cancel()
		if isBack := awayFor == 2; isBack != (err == nil) || strings.Count(out.String(), "connection refused; retrying") != 1 {
			t.Errorf("it was away for %d looks: %v\n%s", awayFor, err, &out)
		} else if !isBack && (!strings.Contains(err.Error(), "has not joined after 2s: ") ||
			!strings.HasSuffix(err.Error(), "connection refused"+canBeRepeated)) {
			t.Errorf("it says %v", err)
		}
	}
}

func TestADeploymentIsAwaitedOverARestartOfItsCluster(t *testing.T) {
	h := newAccess()
	refuses := interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return away
	}}
	c := &checked{access: h, Client: fake.NewClientBuilder().WithScheme(h.scheme).WithInterceptorFuncs(refuses).Build()}
	p := newProgress(io.Discard)
	ctx, cancel := context.WithTimeout(t.Context(), 2*lookEvery)
	defer cancel()
	err := c.awaitDeployment(ctx, &p, "cattle-fleet-system", hubDeployment, "the hub")
	if wait.Interrupted(err) || !errors.Is(err, away) || !strings.HasPrefix(err.Error(), "checking whether the hub is running: ") ||
		!strings.HasSuffix(err.Error(), canBeRepeated) {
		t.Errorf("it says %v", err)
	}
}

// TestAHubIsUpOnceItLeads uses a hub with a ready Pod and a late or missing Lease.
func TestAHubIsUpOnceItLeads(t *testing.T) {
	h := newAccess()
	runs := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: naming.SystemNamespace, Name: hubDeployment},
		Spec:   appsv1.DeploymentSpec{Replicas: new(int32(1))},
		Status: appsv1.DeploymentStatus{Replicas: 1, ReadyReplicas: 1, AvailableReplicas: 1, UpdatedReplicas: 1}}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: naming.SystemNamespace, Name: naming.HubLease},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new("fleet-controller-1_uid"), LeaseDurationSeconds: new(int32(15)), RenewTime: new(metav1.NowMicro())}}
	for _, leads := range []bool{true, false} {
		looks := 0
		late := interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object,
			options ...client.GetOption) error {
			if _, isLease := o.(*coordinationv1.Lease); isLease {
				if looks++; looks == 2 && leads {
					if err := c.Create(ctx, lease.DeepCopy()); err != nil {
						return err
					}
				}
			}
			return c.Get(ctx, key, o, options...)
		}}
		c := &checked{
			access: h, server: "https://hub",
			Client: fake.NewClientBuilder().WithScheme(h.scheme).WithObjects(runs).WithInterceptorFuncs(late).Build(),
		}
		p := newProgress(io.Discard)
		ctx, cancel := context.WithTimeout(t.Context(), 3*lookEvery)
		err := c.awaitHub(ctx, &p)
		cancel()
		if leads && (err != nil || looks != 2) || !leads && (err == nil ||
			!strings.Contains(err.Error(), "the hub on https://hub has had no leader yet") || !strings.HasSuffix(err.Error(), canBeRepeated)) {
			t.Errorf("leads %t: after %d looks %v", leads, looks, err)
		}
	}
}

func TestWhatAnAgentLoggedLastIsSaidWithWhatToDo(t *testing.T) {
	for log, want := range map[string]string{
		"": "",
		`level=INFO msg="agent state" from=Starting to=Joining reason="the hub is asked"` + "\n" +
			`level=INFO msg="agent state" from=Joining to=BadInput reason="secret \"s\": it has no token" remedy="of that version"` +
			"\n": `secret "s": it has no token. What to do: Correct the object in the message. The agent notices the change at once.`,
		`level=INFO msg="Agent changed state" from=Joining to=Joined reason="joined as clusters/web"`: "joined as clusters/web",
		`level=INFO msg="waits" reason="no lease yet"`:                                                "no lease yet",
	} {
		if says := saidIn([]byte(log)); says != want {
			t.Errorf("%s\nis said as %q", log, says)
		}
	}
}

func TestAStepThatTakesTooLongSaysHowLong(t *testing.T) {
	t.Parallel()
	other := errors.New("another cause")
	for name, row := range map[string]struct {
		is   func(ctx context.Context) error
		want string
	}{
		"a read is interrupted": {
			func(ctx context.Context) error { <-ctx.Done(); return fmt.Errorf("listing: %w", ctx.Err()) },
			"timed out after 1ms: listing: context deadline exceeded" + canBeRepeated,
		},
		"a wait is over": {
			func(ctx context.Context) error {
				<-ctx.Done()
				return fmt.Errorf("waiting: %w"+canBeRepeated, ctx.Err())
			},
			"timed out after 1ms: waiting: context deadline exceeded" + canBeRepeated,
		},
		"the cause of the delay": {func(ctx context.Context) error { <-ctx.Done(); return other }, other.Error()},
		"another error":          {func(context.Context) error { return other }, other.Error()},
	} {
		limit, code := time.Millisecond, exitTimedOut
		if name == "another error" {
			limit, code = time.Hour, exitFailed
		}
		if err := within(t.Context(), limit, row.is); err == nil || err.Error() != row.want || ExitCode(err) != code {
			t.Errorf("%s: it says %v and ends with %d, not %q and %d", name, err, ExitCode(err), row.want, code)
		}
	}
}
