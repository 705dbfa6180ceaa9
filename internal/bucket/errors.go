package bucket

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// ErrExists is the error of an upload to the name of an existing object.
var ErrExists = errors.New("exists already, and is not replaced: use another name")

// remedies maps the codes of S3 servers to the cause and the remedy.
var remedies = map[string]string{
	"NoSuchBucket":                 "there is no such bucket: create it, or correct its name or the region",
	"NoSuchKey":                    "there is no such object: check its name",
	"AccessDenied":                 "the credentials have no right to do this: docs/operations/backup.md has the policy of the bucket",
	"InvalidAccessKeyId":           "the server does not know the access key: correct AWS_ACCESS_KEY_ID",
	"SignatureDoesNotMatch":        "the secret key is wrong: correct AWS_SECRET_ACCESS_KEY",
	"InvalidToken":                 "the session token is wrong: correct AWS_SESSION_TOKEN",
	"ExpiredToken":                 "the session token has expired: get new credentials",
	"RequestTimeTooSkewed":         "the clock of this machine differs from the clock of the server: correct it",
	"AuthorizationHeaderMalformed": "the region is wrong: correct --s3-region or AWS_REGION",
	"PermanentRedirect":            "the bucket is in another region: correct --s3-region or AWS_REGION",
	"TemporaryRedirect":            "the bucket is in another region: correct --s3-region or AWS_REGION",
	"MethodNotAllowed":             "the address is not the address of an S3 server: correct --s3-endpoint or AWS_ENDPOINT_URL",
}

// explained adds the object, the server and the remedy to an error. It hides credentials.
func (c *Client) explained(doing string, o Object, err error) error {
	if err == nil {
		return nil
	}
	var answer minio.ErrorResponse
	var refused credentials.ErrorResponse
	var cause error
	switch answered := errors.As(err, &answer); {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s %s: %w", doing, o, err)
	case answered && isCode(answer, "PreconditionFailed", http.StatusPreconditionFailed):
		return fmt.Errorf("%s %s: it %w", doing, o, ErrExists)
	case answered && remedies[answer.Code] != "":
		cause = fmt.Errorf("%s (%s)", remedies[answer.Code], answer.Code)
	case answered && answer.StatusCode == http.StatusForbidden:
		cause = fmt.Errorf("%s (%s)", remedies["AccessDenied"], answer.Code)
	case errors.As(err, &refused):
		cause = fmt.Errorf("the token service refuses the token in AWS_WEB_IDENTITY_TOKEN_FILE for the role in AWS_ROLE_ARN: %s",
			refused.STSError.Code)
	case answered:
		cause = fmt.Errorf("the server answers %d %s: %s", answer.StatusCode, answer.Code, answer.Message)
	default:
		cause = fmt.Errorf("there is no answer of an S3 server: check the address, the network and the certificate authority: %w", err)
	}
	text := fmt.Sprintf("%s %s at %s: %v", doing, o, c.server, cause)
	for _, secret := range c.secrets() {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "(hidden)")
		}
	}
	return errors.New(text)
}

// isCode reports whether a server answered with a code, or without one but with its HTTP status.
func isCode(said minio.ErrorResponse, code string, status int) bool {
	return said.Code == code || said.StatusCode == status
}
