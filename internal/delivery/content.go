// Package delivery has the common rules of hub and agent for the delivery of a Bundle. They cover
// the format and name of a Content, the ID of a deployment, and the state of a deployment from its
// agent's report.
//
// Its invariant: the functions are pure, and the same input gives the same name and ID in every
// version.
package delivery

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/naming"
)

// MaxContent is the maximum number of unpacked bytes of a Content. A small Content cannot fill the
// memory of its reader.
const MaxContent = 64 << 20

// maxName is the length of the name of a Content.
const maxName = 63

// payload is the content of a Content.
type payload struct {
	Resources []fleet.BundleResource `json:"resources"`
}

// Pack makes the Content of some resources, without labels.
func Pack(resources []fleet.BundleResource) (*fleet.Content, error) {
	plain, err := line(payload{Resources: resources})
	if err != nil {
		return nil, fmt.Errorf("encoding the resources: %w", err)
	}
	packed, err := Gzip(plain)
	if err != nil {
		return nil, fmt.Errorf("compressing the resources: %w", err)
	}
	content := &fleet.Content{Content: packed, SHA256Sum: naming.Digest(plain)}
	content.Name = contentName(content.SHA256Sum)
	return content, nil
}

// Unpack returns the resources in a Content. It first verifies them against the Content's name and
// sum.
func Unpack(content *fleet.Content) ([]fleet.BundleResource, error) {
	plain, err := unzip(content.Content, MaxContent)
	if err != nil {
		return nil, fmt.Errorf("decompressing Content %s: %w", content.Name, err)
	}
	sum := naming.Digest(plain)
	if name := contentName(sum); name != content.Name || (content.SHA256Sum != "" && content.SHA256Sum != sum) {
		return nil, fmt.Errorf("what Content %s holds was changed since it was made: its hash is %s", content.Name, sum)
	}
	var unpacked payload
	if err := json.Unmarshal(plain, &unpacked); err != nil {
		return nil, fmt.Errorf("decoding Content %s: %w", content.Name, err)
	}
	return unpacked.Resources, nil
}

func contentName(sum string) string { return ("s-" + sum)[:maxName] }

// File returns the decoded bytes of a resource.
func File(resource fleet.BundleResource) ([]byte, error) { return FileWithin(resource, MaxContent) }

// FileWithin does the same as File, but returns an error for a resource of more than the given
// number of bytes. It unpacks no more than them.
func FileWithin(resource fleet.BundleResource, most int) ([]byte, error) {
	if len(resource.Content) > most && resource.Encoding == fleet.EncodingPlain {
		return nil, fmt.Errorf("%s: %w", resource.Name, TooLargeError(most))
	}
	switch resource.Encoding {
	case fleet.EncodingPlain:
		return []byte(resource.Content), nil
	case fleet.EncodingGzip:
		packed, err := base64.StdEncoding.DecodeString(resource.Content)
		if err != nil {
			return nil, fmt.Errorf("%s: it is not the base64 that its encoding says: %w", resource.Name, err)
		}
		plain, err := unzip(packed, most)
		var tooLarge TooLargeError
		if errors.As(err, &tooLarge) {
			return nil, fmt.Errorf("%s: %w", resource.Name, err)
		} else if err != nil {
			return nil, fmt.Errorf("%s: it is not the gzip that its encoding says: %w", resource.Name, err)
		}
		return plain, nil
	}
	return nil, fmt.Errorf("%s: its encoding %q is unknown; known are none and %s", resource.Name, resource.Encoding, fleet.EncodingGzip)
}

// DeploymentID identifies the content of a BundleDeployment: a Content and the options with their
// values. As with Rancher Fleet, diff and correctDrift are left out, because they deploy nothing.
func DeploymentID(contentName string, options fleet.BundleDeploymentOptions) (string, error) {
	options.Diff, options.CorrectDrift = nil, nil
	return FormerDeploymentID(contentName, options)
}

// FormerDeploymentID returns the deployment ID by the rules of earlier versions of the hub.
func FormerDeploymentID(contentName string, options fleet.BundleDeploymentOptions) (string, error) {
	options.NamespaceCreationForbiddenBy = "" // the reason of createNamespace deploys nothing
	encoded, err := line(options)
	if err != nil {
		return "", fmt.Errorf("encoding the options: %w", err)
	}
	return contentName + ":" + naming.Digest(encoded), nil
}

// WithCopies returns a deployment ID for the content of the copies in downstreamResources, too, by
// its digest.
func WithCopies(deploymentID, digest string) string {
	return ContentName(deploymentID) + ":" + naming.Digest(deploymentID+" "+digest)
}

// ContentName returns the name of the Content in a deployment ID.
func ContentName(deploymentID string) string {
	name, _, _ := strings.Cut(deploymentID, ":")
	return name
}

// ValuesHash returns spec.valuesHash of a BundleDeployment: the hash of the values in its Secret,
// followed by the staged ones.
//
// The documentation of upstream says only: its agents compare such a hash with the Secret. This is
// the simplest computation consistent with the other hashes. No test vector from upstream confirms
// it, unlike everything else in a BundleDeployment.
func ValuesHash(secret map[string][]byte) string {
	if len(secret[fleet.KeyValues])+len(secret[fleet.KeyStagedValues]) == 0 {
		return ""
	}
	return naming.Digest(append(bytes.Clone(secret[fleet.KeyValues]), secret[fleet.KeyStagedValues]...))
}

// BundleValuesHash returns spec.valuesHash of a Bundle: the hash of the Secret with its values.
func BundleValuesHash(secret map[string][]byte) (string, error) {
	text, err := json.Marshal(secret) // sorts the keys and writes the values as base64
	if err != nil {
		return "", fmt.Errorf("encoding the values: %w", err)
	}
	return naming.Digest(text), nil
}

// line returns the JSON of a value and a newline, as upstream hashes it.
func line(of any) ([]byte, error) {
	var buffer bytes.Buffer
	err := json.NewEncoder(&buffer).Encode(of)
	return buffer.Bytes(), err
}

// Gzip compresses data as much as gzip can, the same in every process.
func Gzip(plain []byte) ([]byte, error) {
	var buffer bytes.Buffer
	writer, err := gzip.NewWriterLevel(&buffer, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	_, err = writer.Write(plain)
	err = errors.Join(err, writer.Close())
	return buffer.Bytes(), err
}

// Gunzip returns the data compressed by Gzip, or an error if it has more than the given number of
// bytes.
func Gunzip(packed []byte, most int) ([]byte, error) { return unzip(packed, most) }

// TooLargeError is the error for data with more unpacked bytes than this number.
type TooLargeError int

func (e TooLargeError) Error() string {
	return fmt.Sprintf("it unpacks to more than %.3g MiB", float64(e)/(1<<20))
}

func unzip(packed []byte, most int) ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	plain, err := io.ReadAll(io.LimitReader(reader, int64(most)+1))
	if err != nil {
		return nil, err
	}
	if len(plain) > most {
		return nil, TooLargeError(most)
	}
	return plain, nil
}
