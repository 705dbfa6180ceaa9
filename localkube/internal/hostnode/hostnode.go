// Package hostnode is a Kubernetes node that runs containers as processes of this machine, with the
// rights of the user who started it.
//
// It owns one Node object with its Lease, and the status of the Pods bound to it. An image is the
// name of a program (or of a directory of programs) given at the start. There is no isolation: no
// file system, network or user of a container's own.
//
// The Pod's status and an event report a request of a Pod that no process can have. The node never
// ignores such a request, and never waits for it.
package hostnode

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"github.com/muster-fleet/muster/localkube/internal/process"
)

// loopback is the node's address: nothing of localkube listens elsewhere.
const loopback = "127.0.0.1"

// Config identifies the node and its permitted programs.
type Config struct {
	// Name of the Node object, and the Kubernetes version it reports.
	Name, Version string
	// REST reaches the API server as an administrator.
	REST *rest.Config
	// Dir holds the pods' files and logs.
	Dir string
	// PodNetwork is the /24 for the pods' addresses.
	PodNetwork [3]byte
	// Images maps an image's name to a program or a directory of programs.
	Images map[string]string
	// Group starts the processes.
	Group *process.Group
	// CertFile and KeyFile serve logs to clients with a certificate signed by ClientCAFile. Only the
	// API server has one.
	CertFile, KeyFile, ClientCAFile string
	// Hurry, when closed, ends the grace periods of a stop.
	Hurry <-chan struct{}
}

// Node runs the Pods bound to it.
type Node struct {
	config    Config
	client    kubernetes.Interface
	recorder  record.EventRecorder
	addresses *addresses
	// registered is closed when the Node object is up to date.
	registered chan struct{}

	mu      sync.Mutex
	runners map[types.UID]*runner
	closed  bool
	group   sync.WaitGroup
}

// New prepares a node; Run runs it.
func New(config Config) (*Node, error) {
	client, err := kubernetes.NewForConfig(config.REST)
	if err != nil {
		return nil, fmt.Errorf("making a client for node %s: %w", config.Name, err)
	}
	if err := os.MkdirAll(config.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating the pods' directory: %w", err)
	}
	return &Node{
		config:     config,
		client:     client,
		addresses:  newAddresses(config.PodNetwork),
		registered: make(chan struct{}),
		runners:    map[types.UID]*runner{},
	}, nil
}

// Registered returns a channel that is closed once the Node object describes this node. Until then
// it may be from an earlier run.
func (n *Node) Registered() <-chan struct{} { return n.registered }

// Run registers the node and runs its Pods until ctx ends. Then it stops their processes, each with
// its grace period, and leaves the objects unchanged.
func (n *Node) Run(ctx context.Context) error {
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: n.client.CoreV1().Events("")})
	n.recorder = broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "localkube", Host: n.config.Name})

	server, err := n.serve()
	if err != nil {
		return err
	}
	defer server.close()
	if err := n.register(ctx, server.port); err != nil {
		return err
	}
	close(n.registered)
	var loops sync.WaitGroup
	loops.Go(func() { n.renewLease(ctx) })
	loops.Go(func() { n.renewStatus(ctx, server.port) })
	defer loops.Wait()
	err = n.watchPods(ctx)
	n.stopAll()
	return errors.Join(err, server.err())
}

// watchPods hands every change of a Pod to its runner until ctx ends.
func (n *Node) watchPods(ctx context.Context) error {
	factory := informers.NewSharedInformerFactoryWithOptions(n.client, 0, informers.WithTweakListOptions(func(options *metav1.ListOptions) {
		options.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", n.config.Name).String()
	}))
	informer := factory.Core().V1().Pods().Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { n.seen(object) },
		UpdateFunc: func(_, object any) { n.seen(object) },
		DeleteFunc: func(object any) { n.gone(object) },
	})
	if err != nil {
		return fmt.Errorf("watching the pods of node %s: %w", n.config.Name, err)
	}
	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	if cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		if err := n.dropStaleDirs(informer.GetStore()); err != nil {
			klog.FromContext(ctx).Error(err, "Cleaning up after deleted pods")
		}
	}
	<-ctx.Done()
	return nil
}

func (n *Node) seen(object any) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return
	}
	if known := n.runners[pod.UID]; known != nil {
		known.update(pod)
		return
	}
	r := newRunner(n, pod)
	n.runners[pod.UID] = r
	n.group.Go(func() {
		r.run()
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.runners, pod.UID)
	})
}

func (n *Node) gone(object any) {
	if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = tombstone.Obj
	}
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if known := n.runners[pod.UID]; known != nil {
		known.forget()
	}
}

// find returns the runner of a Pod by name, for its logs.
func (n *Node) find(namespace, name string) *runner {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, r := range n.runners {
		if r.key.Namespace == namespace && r.key.Name == name {
			return r
		}
	}
	return nil
}

// stopAll stops every pod's processes at once and waits for them.
func (n *Node) stopAll() {
	n.mu.Lock()
	n.closed = true
	for _, r := range n.runners {
		r.leave()
	}
	n.mu.Unlock()
	done := make(chan struct{})
	go func() {
		n.group.Wait()
		close(done)
	}()
	select {
	case <-done:
		return
	case <-n.config.Hurry:
	}
	n.mu.Lock()
	for _, r := range n.runners {
		r.cutShort()
	}
	n.mu.Unlock()
	<-done
}

// dropStaleDirs removes the files of pods deleted while the node was down.
func (n *Node) dropStaleDirs(store cache.Store) error {
	entries, err := os.ReadDir(n.config.Dir)
	if err != nil {
		return fmt.Errorf("listing the pods' directories: %w", err)
	}
	wanted := map[string]bool{}
	for _, object := range store.List() {
		if pod, ok := object.(*corev1.Pod); ok {
			wanted[dirName(pod)] = true
		}
	}
	var problems []error
	for _, entry := range entries {
		if !wanted[entry.Name()] {
			problems = append(problems, os.RemoveAll(filepath.Join(n.config.Dir, entry.Name())))
		}
	}
	return errors.Join(problems...)
}

// pause waits for d or until ctx ends, and reports whether d has passed.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
