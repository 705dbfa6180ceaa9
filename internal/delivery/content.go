// Package delivery is what hub and agent have to agree on to deliver a Bundle: how its files are
// packed into a Content, how that is named, how a deployment is identified, and how it stands by
// what its agent reports.
//
// Its invariant: the functions are pure, and the same input gives the same name and
// ID in every version.
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

// MaxContent is how many bytes a Content may unpack to, so that a small one cannot fill the memory
// of whoever reads it.
const MaxContent = 64 << 20

// maxName is how long the name of a Content is.
const maxName = 63

// payload is what a Content holds.
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

// Unpack returns the resources in a Content, after it has made sure that they are what the
// Content's name and sum promise.
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

// File returns the bytes of a resource as its encoding says.
func File(resource fleet.BundleResource) ([]byte, error) { return FileWithin(resource, MaxContent) }

// FileWithin is File, and an error if the resource has more than so many bytes, of which
// it unpacks no more.
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

// DeploymentID identifies what a BundleDeployment deploys: a Content and the options with their
// values. As with Rancher Fleet, diff and correctDrift are left out: they deploy nothing.
func DeploymentID(contentName string, options fleet.BundleDeploymentOptions) (string, error) {
	options.Diff, options.CorrectDrift = nil, nil
	return FormerDeploymentID(contentName, options)
}

// FormerDeploymentID returns the deployment ID by the rules of earlier versions of the hub.
func FormerDeploymentID(contentName string, options fleet.BundleDeploymentOptions) (string, error) {
	encoded, err := line(options)
	if err != nil {
		return "", fmt.Errorf("encoding the options: %w", err)
	}
	return contentName + ":" + naming.Digest(encoded), nil
}

// ContentName is the name of the Content in a deployment ID.
func ContentName(deploymentID string) string {
	name, _, _ := strings.Cut(deploymentID, ":")
	return name
}

// ValuesHash is spec.valuesHash of a BundleDeployment: the hash of the values in its Secret,
// followed by the staged ones. What is documented of upstream says that its agents compare such a
// hash with the Secret, and not how it is computed; this is the plainest that fits what else is
// hashed, and the one thing in a BundleDeployment that no vector of upstream's confirms.
func ValuesHash(secret map[string][]byte) string {
	if len(secret[fleet.KeyValues])+len(secret[fleet.KeyStagedValues]) == 0 {
		return ""
	}
	return naming.Digest(append(bytes.Clone(secret[fleet.KeyValues]), secret[fleet.KeyStagedValues]...))
}

// BundleValuesHash is spec.valuesHash of a Bundle: the hash of the Secret into which
// its values were put.
func BundleValuesHash(secret map[string][]byte) (string, error) {
	text, err := json.Marshal(secret) // which sorts the keys and writes the values as base64
	if err != nil {
		return "", fmt.Errorf("encoding the values: %w", err)
	}
	return naming.Digest(text), nil
}

// line is the JSON of something and a newline, as upstream hashes it.
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

// Gunzip returns what Gzip compressed, or an error if that is more than so many bytes.
func Gunzip(packed []byte, most int) ([]byte, error) { return unzip(packed, most) }

// TooLargeError is how many bytes something may unpack to, and has more.
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
