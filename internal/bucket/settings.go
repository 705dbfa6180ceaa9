// Package bucket reads and writes objects of an S3 server, such as the files of muster backup.
//
// Its invariants: an upload is complete or leaves no object, and replaces none. Credentials come
// only from the environment, and from files named there. No error contains a credential. The
// memory of an upload does not depend on its size.
package bucket

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/spf13/pflag"
)

const (
	scheme = "s3://"
	// retries is the number of attempts of a request.
	retries = 4
	// defaultEndpoint and defaultRegion are Amazon's.
	defaultEndpoint = "https://s3.amazonaws.com"
	defaultRegion   = "us-east-1"
)

// Object is the address of an object: s3://BUCKET/KEY.
type Object struct {
	Bucket, Key string
}

func (o Object) String() string { return scheme + o.Bucket + "/" + o.Key }

// IsAddress reports whether a text is an address in a bucket, and not the name of a file.
func IsAddress(text string) bool { return strings.HasPrefix(text, scheme) }

var (
	bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
	keyName    = regexp.MustCompile(`^[A-Za-z0-9!_.*'()=@+,-]+(/[A-Za-z0-9!_.*'()=@+,-]+)*$`)
)

// Parse reads the address of an object.
func Parse(text string) (Object, error) {
	o, err := ParsePrefix(text)
	if err == nil && o.Key == "" {
		err = fmt.Errorf("%s names no object: an address is s3://BUCKET/NAME, such as s3://backups/hub/2026-11-30.age", text)
	}
	return o, err
}

// ParsePrefix reads the address of a bucket with an optional prefix: s3://BUCKET/PREFIX. It removes
// a slash at the end.
func ParsePrefix(text string) (Object, error) {
	name, key, _ := strings.Cut(strings.TrimPrefix(text, scheme), "/")
	key = strings.TrimSuffix(key, "/")
	switch {
	case !IsAddress(text) || !bucketName.MatchString(name):
		return Object{}, fmt.Errorf("%q is no address in a bucket: an address is s3://BUCKET/NAME, and BUCKET has 3 to 63 lower-case letters, "+
			"digits, dots and hyphens", text)
	case key != "" && (!keyName.MatchString(key) || len(key) > 900 || hasDots(key)):
		return Object{}, fmt.Errorf("%q is no name of an object: use letters, digits, hyphens, dots, underscores and single slashes", key)
	}
	return Object{Bucket: name, Key: key}, nil
}

// hasDots reports whether a part of a key is . or .., which servers resolve in different ways.
func hasDots(key string) bool {
	for part := range strings.SplitSeq(key, "/") {
		if part == "." || part == ".." {
			return true
		}
	}
	return false
}

// Settings say which server has the bucket. Empty fields have the values of Amazon S3.
type Settings struct {
	// Endpoint is the address of the server, such as https://s3.example.com.
	Endpoint string
	Region   string
	// CAFile has the certificates of authorities to trust besides the system's.
	CAFile string
	// PathStyle puts the bucket's name into the path of each address instead of into its host. It is
	// the default for all servers except Amazon's, Google's and Alibaba's.
	PathStyle bool
}

// AddFlags adds the flags of the settings.
func (s *Settings) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&s.Endpoint, "s3-endpoint", "", "Address of the S3 server of an s3:// address (default: Amazon S3)")
	flags.StringVar(&s.Region, "s3-region", "", "Region of the bucket")
	flags.StringVar(&s.CAFile, "s3-ca-file", "", "File with the certificate authorities of the S3 server, in PEM")
	flags.BoolVar(&s.PathStyle, "s3-path-style", false, "Put the name of the bucket into the path, also for Amazon S3")
}

// WithEnvironment fills empty fields from the variables that the AWS command line reads.
func (s Settings) WithEnvironment() Settings {
	fill := func(field *string, variables ...string) {
		for _, variable := range variables {
			if *field == "" {
				*field = os.Getenv(variable)
			}
		}
	}
	fill(&s.Endpoint, "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
	fill(&s.Region, "AWS_REGION", "AWS_DEFAULT_REGION")
	fill(&s.CAFile, "AWS_CA_BUNDLE")
	return s
}

// Client is a client of one S3 server.
type Client struct {
	core minio.Core
	// server is the address of the server for messages.
	server string
	// secrets returns the credentials that must not be in an error.
	secrets func() []string
}

// New returns a client with the credentials of the environment. It connects to no server yet.
func New(s Settings) (*Client, error) {
	if s.Endpoint == "" {
		s.Endpoint = defaultEndpoint
	}
	if s.Region == "" {
		s.Region = defaultRegion
	}
	address, err := url.Parse(s.Endpoint)
	if err != nil || address.Host == "" || address.User != nil || address.RawQuery != "" || address.Fragment != "" ||
		strings.Trim(address.Path, "/") != "" ||
		address.Scheme != "https" && address.Scheme != "http" {
		return nil, errors.New("the address of the S3 server is not https:// with a host, such as https://s3.example.com:9000: correct " +
			"--s3-endpoint or AWS_ENDPOINT_URL")
	}
	transport, err := s.transport(address.Scheme == "https")
	if err != nil {
		return nil, err
	}
	given, secrets, err := fromEnvironment()
	if err != nil {
		return nil, err
	}
	style := minio.BucketLookupAuto
	if s.PathStyle {
		style = minio.BucketLookupPath
	}
	core, err := minio.NewCore(address.Host, &minio.Options{
		Creds: given, Secure: address.Scheme == "https", Transport: transport, Region: s.Region, BucketLookup: style, MaxRetries: retries,
	})
	if err != nil {
		return nil, fmt.Errorf("preparing the client of %s: %w", s.Endpoint, err)
	}
	return &Client{core: *core, server: address.Scheme + "://" + address.Host, secrets: secrets}, nil
}

func (s Settings) transport(secure bool) (*http.Transport, error) {
	transport, err := minio.DefaultTransport(secure)
	if err != nil || s.CAFile == "" {
		return transport, err
	}
	text, err := os.ReadFile(s.CAFile)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate authorities of the S3 server: %w", err)
	}
	authorities, err := x509.SystemCertPool()
	if err != nil {
		authorities = x509.NewCertPool()
	}
	if !authorities.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate in PEM: correct --s3-ca-file or AWS_CA_BUNDLE", s.CAFile)
	}
	transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: authorities}
	return transport, nil
}

// errNoCredentials names all sources of credentials.
var errNoCredentials = errors.New("there are no credentials of the S3 server: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or " +
	"AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN, or AWS_SHARED_CREDENTIALS_FILE or AWS_PROFILE")

// fromEnvironment chooses a source of credentials. It never looks for the credentials of a machine
// at a metadata service.
func fromEnvironment() (*credentials.Credentials, func() []string, error) {
	token := os.Getenv("AWS_WEB_IDENTITY_TOKEN_FILE")
	var given *credentials.Credentials
	switch {
	case os.Getenv("AWS_ACCESS_KEY_ID") != "":
		if os.Getenv("AWS_SECRET_ACCESS_KEY") == "" {
			return nil, nil, errors.New("AWS_ACCESS_KEY_ID has no AWS_SECRET_ACCESS_KEY: set both")
		}
		given = credentials.NewStaticV4(os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY"), os.Getenv("AWS_SESSION_TOKEN"))
	case token != "":
		if os.Getenv("AWS_ROLE_ARN") == "" {
			return nil, nil, errors.New("AWS_WEB_IDENTITY_TOKEN_FILE has no AWS_ROLE_ARN: set both")
		}
		given = credentials.NewIAM(os.Getenv("AWS_ENDPOINT_URL_STS"))
	case os.Getenv("AWS_SHARED_CREDENTIALS_FILE") != "" || os.Getenv("AWS_PROFILE") != "" || hasDefaultFile():
		given = credentials.NewFileAWSCredentials("", "")
	default:
		return nil, nil, errNoCredentials
	}
	secrets := func() []string {
		hidden := []string{os.Getenv("AWS_SECRET_ACCESS_KEY"), os.Getenv("AWS_SESSION_TOKEN")}
		if text, err := os.ReadFile(token); err == nil {
			hidden = append(hidden, strings.TrimSpace(string(text)))
		}
		if given.IsExpired() { // to get others is a request
			return hidden
		}
		if value, err := given.GetWithContext(nil); err == nil {
			hidden = append(hidden, value.SecretAccessKey, value.SessionToken)
		}
		return hidden
	}
	return given, secrets, nil
}

func hasDefaultFile() bool {
	home, err := os.UserHomeDir()
	if err != nil {
		return false
	}
	_, err = os.Stat(home + "/.aws/credentials")
	return err == nil
}
