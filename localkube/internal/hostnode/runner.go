package hostnode

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
)

const (
	retryFirst = 250 * time.Millisecond
	retryMax   = 5 * time.Second
	// forcedGrace is the grace period for the processes of a pod deleted by force.
	forcedGrace = 2 * time.Second
)

// runner is the life of one Pod on this node:
//
//	set up -> init containers one by one -> containers -> (all ended) ...
//	deleted -> processes stopped -> last status -> object removed
//
// It has one goroutine, one per container, and one that reports the status.
type runner struct {
	node *Node
	key  types.NamespacedName
	uid  types.UID
	dir  string
	ip   string

	// stopping ends when the containers must stop, for any reason.
	stopping context.Context
	stop     context.CancelFunc
	// cut, when closed, ends the grace periods.
	cut     chan struct{}
	cutOnce sync.Once
	changed chan struct{}

	mu         sync.Mutex
	pod        *corev1.Pod // the newest seen
	deleted    bool        // the object is marked for deletion
	lost       bool        // the object is gone
	containers map[string]*container
}

func newRunner(n *Node, pod *corev1.Pod) *runner {
	r := &runner{
		node: n, key: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, uid: pod.UID,
		dir:        filepath.Join(n.config.Dir, dirName(pod)),
		cut:        make(chan struct{}),
		changed:    make(chan struct{}, 1),
		containers: map[string]*container{},
	}
	r.stopping, r.stop = context.WithCancel(context.Background())
	for i := range pod.Spec.InitContainers {
		r.addContainer(pod, &pod.Spec.InitContainers[i], pod.Status.InitContainerStatuses, true)
	}
	for i := range pod.Spec.Containers {
		r.addContainer(pod, &pod.Spec.Containers[i], pod.Status.ContainerStatuses, false)
	}
	r.update(pod)
	return r
}

func dirName(pod *corev1.Pod) string {
	return fmt.Sprintf("%s_%s_%s", pod.Namespace, pod.Name, pod.UID)
}

// update stores a new version of the object.
func (r *runner) update(pod *corev1.Pod) {
	r.mu.Lock()
	r.pod = pod
	r.deleted = r.deleted || pod.DeletionTimestamp != nil
	deleted := r.deleted
	r.mu.Unlock()
	if deleted {
		r.stop()
	}
	r.touch()
}

// forget handles an object deleted without the node's consent.
func (r *runner) forget() {
	r.mu.Lock()
	r.lost = true
	r.mu.Unlock()
	time.AfterFunc(forcedGrace, r.cutShort)
	r.stop()
}

// leave handles the stop of the node: the processes end, the object stays.
func (r *runner) leave() { r.stop() }

func (r *runner) cutShort() { r.cutOnce.Do(func() { close(r.cut) }) }

// touch wakes the reporter.
func (r *runner) touch() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

func (r *runner) current() (pod *corev1.Pod, deleted, lost bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pod, r.deleted, r.lost
}

func (r *runner) run() {
	defer r.node.addresses.release(r.uid)
	pod, _, _ := r.current()
	finished := podFinished(pod.Status.Phase)
	reporting, stopReporting := context.WithCancel(context.Background())
	var reporter sync.WaitGroup
	if !finished {
		reporter.Go(func() { r.reportLoop(reporting) })
		r.runContainers(pod)
	}
	<-r.stopping.Done()
	stopReporting()
	reporter.Wait()
	r.end(!finished)
}

// runContainers returns once every container has ended for good.
func (r *runner) runContainers(pod *corev1.Pod) {
	if err := r.setUp(pod); err != nil {
		r.event(corev1.EventTypeWarning, "FailedCreatePodSandBox", err.Error())
		r.holdAll("CreateContainerError", err.Error())
		return
	}
	if problem := unsupportedVolume(pod); problem != "" {
		r.event(corev1.EventTypeWarning, "FailedMount", problem)
		r.holdAll("UnsupportedVolume", problem)
		return
	}
	if !r.prepareAccount(pod) {
		return
	}
	// Sidecars end after the containers.
	sidecars, stopSidecars := context.WithCancel(r.stopping)
	var group sync.WaitGroup
	defer func() {
		stopSidecars()
		group.Wait()
	}()
	for i := range pod.Spec.InitContainers {
		c := r.containers[pod.Spec.InitContainers[i].Name]
		if c.sidecar() {
			group.Go(func() { c.supervise(sidecars) })
			if !c.awaitStarted(sidecars) {
				return
			}
			continue
		}
		c.supervise(r.stopping)
		if !c.succeeded() {
			return
		}
	}
	var work sync.WaitGroup
	for i := range pod.Spec.Containers {
		c := r.containers[pod.Spec.Containers[i].Name]
		work.Go(func() { c.supervise(r.stopping) })
	}
	work.Wait()
}

func (r *runner) setUp(pod *corev1.Pod) error {
	for _, sub := range []string{"home", "tmp", "logs", "volumes"} {
		if err := os.MkdirAll(filepath.Join(r.dir, sub), 0o700); err != nil {
			return fmt.Errorf("creating the directories of pod %s: %w", r.key, err)
		}
	}
	if pod.Spec.HostNetwork {
		r.setIP(loopback)
		return nil
	}
	ip, err := r.node.addresses.take(r.uid, pod.Status.PodIP)
	if err != nil {
		return fmt.Errorf("giving pod %s an address: %w", r.key, err)
	}
	r.setIP(ip)
	return nil
}

func (r *runner) setIP(ip string) {
	r.mu.Lock()
	r.ip = ip
	r.mu.Unlock()
	r.touch()
}

// holdAll reports why no container starts.
func (r *runner) holdAll(reason, message string) {
	for _, c := range r.containers {
		c.wait(reason, message)
	}
}

// end stops the rest and, if the object is to be deleted, deletes it.
func (r *runner) end(report bool) {
	_, deleted, lost := r.current()
	if !deleted && !lost {
		return // The node stops; the next start finds the pod unchanged.
	}
	ctx := context.Background()
	wait := retryFirst
	for !lost {
		err := r.finish(ctx, report)
		if err == nil {
			break
		}
		klog.FromContext(ctx).Error(err, "Removing a deleted pod; trying again", "pod", r.key)
		if r.node.isClosed() {
			return
		}
		time.Sleep(wait)
		wait = min(2*wait, retryMax)
		_, _, lost = r.current()
	}
	if err := os.RemoveAll(r.dir); err != nil {
		klog.FromContext(ctx).Error(err, "Removing the files of a pod", "pod", r.key)
	}
}

func (r *runner) finish(ctx context.Context, report bool) error {
	if report {
		err := r.report(ctx)
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsInvalid(err) {
			return err
		}
	}
	zero := int64(0)
	err := r.node.client.CoreV1().Pods(r.key.Namespace).Delete(ctx, r.key.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &zero,
		Preconditions:      &metav1.Preconditions{UID: &r.uid},
	})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("removing pod %s: %w", r.key, err)
	}
	return nil
}

func (r *runner) event(kind, reason, message string) {
	pod, _, _ := r.current()
	r.node.recorder.Event(pod, kind, reason, message)
}

// grace returns the time for the pod's processes to stop.
func (r *runner) grace() time.Duration {
	pod, _, _ := r.current()
	seconds := int64(corev1.DefaultTerminationGracePeriodSeconds)
	if pod.Spec.TerminationGracePeriodSeconds != nil {
		seconds = *pod.Spec.TerminationGracePeriodSeconds
	}
	if pod.DeletionGracePeriodSeconds != nil {
		seconds = *pod.DeletionGracePeriodSeconds
	}
	return time.Duration(seconds) * time.Second
}

func (n *Node) isClosed() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.closed
}

func podFinished(phase corev1.PodPhase) bool {
	return phase == corev1.PodSucceeded || phase == corev1.PodFailed
}
