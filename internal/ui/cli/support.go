package cli

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/redaction"
	"github.com/muster-fleet/muster/internal/ui/view"
	"github.com/muster-fleet/muster/internal/version"
)

const (
	// maxLog bounds the bytes from the end of each log.
	maxLog = 1 << 20
	// readableByUser is the mode of the file: its content is private to the user.
	readableByUser = 0o600
)

// supporter is the command muster support-bundle.
type supporter struct {
	genericiooptions.IOStreams
	*access
	file string
}

func newSupport(streams genericiooptions.IOStreams, h *access) *cobra.Command {
	s := &supporter{IOStreams: streams, access: h}
	command := &cobra.Command{
		Use:   "support-bundle",
		Short: "Collect diagnostic data without secrets",
		Long: `Write an archive with the diagnostic data of a hub or a member. It contains the objects
of the fleet, the namespaces of the hub and the agents, their logs, and the output of muster explain.

The archive holds no secrets. The command removes:

- the values of Secrets, and everything but the metadata of Contents
- the files of Bundles and Works, and the environment of containers
- your own annotations, changed values on members, and values quoted in messages
- tokens, keys and passwords in any text

Names and labels stay: check the archive before you share it. The file errors.txt in
the archive lists the objects you may not read.`,
		Example: `  muster support-bundle --context hub
  muster support-bundle --context edge-1 --file edge-1.tar.gz
  muster support-bundle --file - | tar tz`,
		Args: takesNone,
		RunE: func(command *cobra.Command, _ []string) error { return s.run(command.Context()) },
	}
	command.Flags().StringVar(&s.file, "file", "", "File to write, or - for standard output (default muster-support-CONTEXT-TIME.tar.gz)")
	return h.acceptAllNamespaces(command)
}

func (s *supporter) run(ctx context.Context) (err error) {
	cluster, err := s.checked()
	if err != nil {
		return err
	}
	if err := require(ctx, cluster.reachable()[:1]); err != nil {
		return err
	}
	out := s.Out
	if s.file != "-" {
		if s.file == "" {
			s.file = fmt.Sprintf("muster-support-%s-%s.tar.gz", fileName(s.contextName()), time.Now().UTC().Format("20060102-150405"))
		}
		file, err := os.OpenFile(s.file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, readableByUser)
		if err != nil {
			return fmt.Errorf("writing the archive: %w", err)
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		out = file
	}
	g, err := newGatherer(cluster, out)
	if err != nil {
		return err
	}
	if err := g.all(ctx); err != nil {
		return err
	}
	if s.file != "-" {
		_, err = fmt.Fprintf(s.Out, "%s has %d files; %d objects could not be read, see errors.txt. Check the archive before you share it.\n",
			s.file, g.files, len(g.unread))
	}
	return err
}

// gatherer writes the data of a cluster to an archive, without secrets.
type gatherer struct {
	*checked
	clients kubernetes.Interface
	packed  *gzip.Writer
	archive *tar.Writer
	files   int
	unread  []string
	taken   time.Time
}

func newGatherer(c *checked, out io.Writer) (*gatherer, error) {
	clients, err := kubernetes.NewForConfig(c.config)
	packed := gzip.NewWriter(out)
	return &gatherer{checked: c, clients: clients, packed: packed, archive: tar.NewWriter(packed), taken: time.Now()}, err
}

// theirs lists the namespaces of hubs and agents.
func theirs() []string {
	return []string{naming.SystemNamespace, naming.RegistrationNamespace(naming.SystemNamespace), naming.MemberSystemNamespace}
}

func (g *gatherer) all(ctx context.Context) error {
	says, _, err := g.answers(ctx)
	g.note("version", err)
	if err := g.write("version.txt", []byte(fmt.Sprintf("muster %s\n%s\n", version.Version, says))); err != nil {
		return err
	}
	kinds, err := g.fleetKinds()
	g.note("the kinds that are served", err)
	for _, kind := range kinds {
		if err := g.objects(ctx, kind); err != nil {
			return err
		}
	}
	for _, namespace := range theirs() {
		for _, kind := range []schema.GroupVersionKind{
			{Version: "v1", Kind: "Pod"}, {Version: "v1", Kind: "Event"}, {Version: "v1", Kind: "ConfigMap"}, {Version: "v1", Kind: "Secret"}, {
				Version: "v1", Kind: "ServiceAccount",
			},
			{Group: "apps", Version: "v1", Kind: "Deployment"}, {Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"},
		} {
			if err := g.objects(ctx, kind, client.InNamespace(namespace)); err != nil {
				return err
			}
		}
		if err := g.logs(ctx, namespace); err != nil {
			return err
		}
	}
	if err := g.explained(ctx); err != nil {
		return err
	}
	if err := g.write("errors.txt", []byte(strings.Join(g.unread, "\n"))); err != nil {
		return err
	}
	return errors.Join(g.archive.Close(), g.packed.Close())
}

// fleetKinds lists the kinds in the API groups of hubs and agents.
func (g *gatherer) fleetKinds() ([]schema.GroupVersionKind, error) {
	lists, err := g.clients.Discovery().ServerPreferredResources()
	if discovery.IsGroupDiscoveryFailedError(err) {
		g.note("some kinds", err)
		err = nil
	}
	var kinds []schema.GroupVersionKind
	for _, list := range lists {
		version, parsed := schema.ParseGroupVersion(list.GroupVersion)
		if parsed != nil || !slices.ContainsFunc([]string{"fleet.cattle.io", "kubernetes-fleet.io", "muster-fleet.github.io",
			"multicluster.x-k8s.io"}, func(of string) bool { return strings.HasSuffix(version.Group, of) }) {
			continue
		}
		for _, resource := range list.APIResources {
			if slices.Contains(resource.Verbs, "list") {
				kinds = append(kinds, version.WithKind(resource.Kind))
			}
		}
	}
	return kinds, err
}

// objects writes the objects of a kind, one file each.
func (g *gatherer) objects(ctx context.Context, kind schema.GroupVersionKind, options ...client.ListOption) error {
	var failed error
	err := view.Each(ctx, g, listOf(kind), func(o client.Object) {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		object := &unstructured.Unstructured{Object: content}
		var text []byte
		if err == nil {
			object.SetGroupVersionKind(kind)
			redaction.Object(object)
			text, err = yaml.Marshal(object)
		}
		if err == nil {
			name := fileName(object.GetName()) + ".yaml"
			if namespace := object.GetNamespace(); namespace != "" {
				name = path.Join(fileName(namespace), name)
			}
			err = g.write(path.Join(strings.ToLower(kind.GroupKind().String()), name), text)
		}
		failed = errors.Join(failed, err)
	}, options...)
	g.note(kind.Kind, err)
	return failed
}

// listOf returns an empty list of a kind. For Contents it lists only the metadata.
func listOf(kind schema.GroupVersionKind) client.ObjectList {
	of := kind.GroupVersion().WithKind(kind.Kind + "List")
	if kind.Kind == "Content" {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(of)
		return list
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(of)
	return list
}

// logs writes the end of the logs of a namespace's Pods, including earlier containers.
func (g *gatherer) logs(ctx context.Context, namespace string) error {
	pods, err := g.clients.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		g.note("logs in namespace "+namespace, err)
		return nil
	}
	for _, pod := range pods.Items {
		for _, container := range pod.Status.ContainerStatuses {
			for _, previous := range []bool{false, true} {
				if previous && container.RestartCount == 0 {
					continue
				}
				options := &corev1.PodLogOptions{
					Container: container.Name, Previous: previous, LimitBytes: new(int64(maxLog)), TailLines: new(int64(maxLog / 200)),
				}
				text, err := g.clients.CoreV1().Pods(namespace).GetLogs(pod.Name, options).DoRaw(ctx)
				if err != nil {
					g.note("the log of "+namespace+"/"+pod.Name, err)
					continue
				}
				name := container.Name + ".log"
				if previous {
					name = container.Name + ".previous.log"
				}
				if err := g.write(path.Join("logs", namespace, fileName(pod.Name), fileName(name)), []byte(redaction.Scrub(string(text)))); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// explained writes the output of muster explain on a hub.
func (g *gatherer) explained(ctx context.Context) error {
	var out bytes.Buffer
	e := &explainer{IOStreams: genericiooptions.IOStreams{Out: &out, ErrOut: &out}, access: g.access}
	if _, err := e.fleet(ctx); err != nil {
		g.note("what is wrong with the fleet", err)
		return nil
	}
	return g.write("explain.txt", []byte(redaction.Scrub(out.String())))
}

// note keeps a failed read for errors.txt.
func (g *gatherer) note(what string, err error) {
	if err != nil {
		g.unread = append(g.unread, redaction.Scrub(what+": "+err.Error()))
	}
}

func (g *gatherer) write(name string, text []byte) error {
	err := g.archive.WriteHeader(&tar.Header{
		Name: path.Join("muster-support", name), Mode: readableByUser, Size: int64(len(text)), ModTime: g.taken,
	})
	if err == nil {
		_, err = g.archive.Write(text)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	g.files++
	return nil
}
