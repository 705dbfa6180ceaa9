package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/naming"
)

// The Secret keeps the credential of Rancher Fleet's agent while the cluster is a member of
// another hub.
const (
	keptCredential = "fleet-agent-before-move"
	// labelKept marks the Secret as a copy that this program made.
	labelKept  = "muster/kept-by"
	keptByMove = "move"
	// annotationMovedTo names the Cluster on Muster's hub, once the way back has begun.
	annotationMovedTo = "muster/moved-to"
)

// credentialKeys are the keys of Rancher Fleet's agent in its Secret. Muster's agent adds others.
var credentialKeys = []string{"clusterName", "clusterNamespace", "deploymentNamespace", "kubeconfig"}

// rancherCredential is the content of a Secret of Rancher Fleet's agent.
type rancherCredential struct {
	server, token string
	ca            []byte
	cluster       types.NamespacedName
	member        string
}

// readRancherCredential reads a credential in the form of Rancher Fleet's agent; nil if it has
// another form. Only the address, the CA and the token count. A kubeconfig may name commands to
// run and files to read, and a member wrote this one.
func readRancherCredential(secret *corev1.Secret) *rancherCredential {
	if secret == nil || !slices.Equal(slices.Sorted(maps.Keys(secret.Data)), credentialKeys) {
		return nil
	}
	from, err := clientcmd.Load(secret.Data["kubeconfig"])
	if err != nil {
		return nil
	}
	read := &rancherCredential{
		cluster: types.NamespacedName{Namespace: string(secret.Data["clusterNamespace"]), Name: string(secret.Data["clusterName"])},
		member:  string(secret.Data["deploymentNamespace"]),
	}
	for _, cluster := range from.Clusters {
		read.server, read.ca = cluster.Server, cluster.CertificateAuthorityData
	}
	for _, user := range from.AuthInfos {
		read.token = user.Token
	}
	if read.server == "" || read.token == "" || read.cluster.Name == "" || read.cluster.Namespace == "" {
		return nil
	}
	return read
}

// config reaches the hub of the credential.
func (r *rancherCredential) config() *rest.Config {
	return &rest.Config{Host: r.server, BearerToken: r.token, TLSClientConfig: rest.TLSClientConfig{CAData: r.ca}, Timeout: answersWithin}
}

// mustKeep reports whether a move copies the present credential. The copy of an earlier run
// stays after Muster's agent has replaced the credential with its own.
func mustKeep(now, kept *corev1.Secret) bool {
	return readRancherCredential(now) != nil && (kept == nil || !sameData(now, kept))
}

// mustRestore reports whether the way back writes the copy over the present credential. A newer
// credential of Rancher Fleet's agent from the same hub stays: the hub has ended the copied
// one.
func mustRestore(now, kept *corev1.Secret) bool {
	if now != nil && sameData(now, kept) {
		return false
	}
	has, copied := readRancherCredential(now), readRancherCredential(kept)
	return has == nil || copied == nil || has.server != copied.server
}

func sameData(a, b *corev1.Secret) bool {
	return maps.EqualFunc(a.Data, b.Data, func(x, y []byte) bool { return string(x) == string(y) })
}

// agentSecret reads the Secret with the credential of the agent; nil if there is none.
func (c *checked) agentSecret(ctx context.Context) (*corev1.Secret, error) {
	return c.secret(ctx, naming.AgentSecret, "the credential of the agent")
}

// kept reads the copy that muster move made; nil if there is none.
func (c *checked) kept(ctx context.Context) (*corev1.Secret, error) {
	secret, err := c.secret(ctx, keptCredential, "the credential that muster move kept")
	if err != nil || secret == nil || secret.Labels[labelKept] != keptByMove {
		return nil, err
	}
	return secret, nil
}

func (c *checked) secret(ctx context.Context, name, what string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := c.Get(ctx, client.ObjectKey{Namespace: naming.SystemNamespace, Name: name}, secret)
	if apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("reading %s in Secret %s/%s on %s: %w", what, naming.SystemNamespace, name, c.role, err)
	}
	return secret, nil
}

// keepCredential copies the credential of Rancher Fleet's agent, and reports whether a copy
// exists. It leaves a Secret of the copy's name alone if this program did not create it.
func (c *checked) keepCredential(ctx context.Context) (bool, error) {
	now, err := c.agentSecret(ctx)
	if err != nil {
		return false, err
	}
	kept, err := c.kept(ctx)
	if err != nil || !mustKeep(now, kept) {
		return kept != nil, err
	}
	if kept != nil {
		kept.Data = now.Data
		err = c.Update(ctx, kept) // fails if the copy has changed since
	} else {
		err = c.Create(ctx, &corev1.Secret{Type: corev1.SecretTypeOpaque, Data: now.Data, ObjectMeta: metav1.ObjectMeta{
			Namespace: naming.SystemNamespace, Name: keptCredential, Labels: map[string]string{labelKept: keptByMove}}})
	}
	switch {
	case apierrors.IsAlreadyExists(err):
		return false, fmt.Errorf("secret %s/%s on %s has no label %s=%s, so muster move did not make it: delete it if you do not need it",
			naming.SystemNamespace, keptCredential, c.role, labelKept, keptByMove)
	case err != nil:
		return false, fmt.Errorf("keeping the credential of Rancher Fleet's agent in Secret %s/%s on %s: %w",
			naming.SystemNamespace, keptCredential, c.role, err)
	}
	return true, nil
}
