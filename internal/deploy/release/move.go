package release

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/deploy/removal"
)

// annotationCopyOf is the annotation of a copied Secret for the UID of the original.
const annotationCopyOf = "muster/copy-of"

// Move moves the history of a release into the namespace of the release, or to another name. It
// changes no object: a renamed release must be deployed again. Move can be repeated after an
// interruption at any point.
func (c *Cluster) Move(ctx context.Context, s Summary, to ID, o Owner) error {
	free, err := c.reserve(ctx, to, to.Namespace, o)
	if err != nil {
		return err
	}
	defer free()
	return c.moveInto(ctx, s, to, o)
}

// moveInto moves a history to a reserved place.
func (c *Cluster) moveInto(ctx context.Context, s Summary, to ID, o Owner) error {
	if s.ID() == to {
		if err := c.checkOwner(ctx, to, s.History, o); err != nil {
			return err
		}
	} else {
		free, err := c.reserve(ctx, s.ID(), s.History, o)
		if err != nil {
			return err
		}
		defer free()
	}
	from, err := c.secrets(ctx, s.Name, s.History)
	if err != nil {
		return err
	}
	existing, err := c.secrets(ctx, to.Name, to.Namespace)
	if err != nil {
		return err
	}
	if err := c.copyTo(ctx, to, from, existing); err != nil {
		return err
	}
	// The newest revision names the owner, so it is deleted last.
	for _, old := range from {
		err := removal.Delete(ctx, c.Kube.CoreV1().Secrets(s.History).Delete, old.secret, removal.Copied)
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("deleting secret %s/%s, which was copied to namespace %s: %w", s.History, old.secret.Name, to.Namespace, err)
		}
	}
	return nil
}

// revision is a Secret of a history with its content.
type revision struct {
	secret *corev1.Secret
	stored
}

// secrets returns the Secrets of a history, the oldest revision first. An unreadable revision is an
// error, because its owner is unknown.
func (c *Cluster) secrets(ctx context.Context, name, namespace string) ([]revision, error) {
	var history []revision
	var unread error
	err := c.eachSecret(ctx, namespace, ofRelease(name), func(secret *corev1.Secret) {
		s, err := read(secret)
		unread = cmp.Or(unread, err)
		history = append(history, revision{secret, s})
	})
	if err != nil {
		return nil, fmt.Errorf("reading the history of release %s/%s: %w", namespace, name, err)
	}
	slices.SortFunc(history, func(a, b revision) int { return cmp.Compare(a.Version, b.Version) })
	return history, unread
}

// copyTo copies the revisions without a copy. An existing history there continues with the copies.
func (c *Cluster) copyTo(ctx context.Context, to ID, from, existing []revision) error {
	highest, copied := 0, map[types.UID]bool{}
	for _, one := range existing {
		highest = one.Version
		copied[types.UID(one.secret.Annotations[annotationCopyOf])] = true
	}
	for _, one := range from {
		if copied[one.secret.UID] {
			continue
		}
		highest = max(highest+1, one.Version)
		fresh, err := one.as(to, highest)
		if err != nil {
			return err
		}
		if _, err := c.Kube.CoreV1().Secrets(to.Namespace).Create(ctx, fresh, metav1.CreateOptions{FieldManager: FieldManager}); err != nil {
			return fmt.Errorf("copying secret %s/%s to namespace %s as %s: %w", one.secret.Namespace, one.secret.Name, to.Namespace, fresh.Name, err)
		}
	}
	return nil
}

// as returns a copy of the revision for another place.
func (r revision) as(to ID, version int) (*corev1.Secret, error) {
	labels, data := maps.Clone(r.secret.Labels), r.secret.Data
	if to != (ID{r.Namespace, r.Name}) || version != r.Version {
		rewritten, err := rewrite(data["release"], map[string]any{"name": to.Name, "namespace": to.Namespace, "version": version})
		if err != nil {
			return nil, unreadable(r.secret, err)
		}
		data = map[string][]byte{"release": rewritten}
		labels["name"], labels["version"] = to.Name, strconv.Itoa(version)
	}
	if to.Name != r.Name && labels[labelRenamed] == "" {
		labels[labelRenamed] = r.Name
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: to.Namespace, Name: secretName(to.Name, version), Labels: labels, Annotations: map[string]string{
				annotationCopyOf: string(r.secret.UID),
			},
		},
		Type: r.secret.Type, Data: data,
	}, nil
}

// rewrite changes some fields of a release in Helm's encoding.
func rewrite(data []byte, fields map[string]any) ([]byte, error) {
	text, err := unpack(data)
	if err != nil {
		return nil, err
	}
	var release map[string]any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber() // keeps large numbers in values exact
	if err := decoder.Decode(&release); err != nil {
		return nil, err
	}
	maps.Copy(release, fields)
	if text, err = json.Marshal(release); err != nil {
		return nil, err
	}
	packed, err := delivery.Gzip(text)
	if err != nil {
		return nil, err
	}
	return []byte(base64.StdEncoding.EncodeToString(packed)), nil
}
