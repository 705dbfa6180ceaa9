package bucket

import (
	"context"
	"io"

	"github.com/minio/minio-go/v7"
)

// Download writes the content of an object to a writer.
func (c *Client) Download(ctx context.Context, o Object, to io.Writer) error {
	content, _, _, err := c.core.GetObject(ctx, o.Bucket, o.Key, minio.GetObjectOptions{})
	if err != nil {
		return c.explained("reading", o, err)
	}
	_, err = io.Copy(to, content)
	if closeErr := content.Close(); err == nil {
		err = closeErr
	}
	return c.explained("reading", o, err)
}

// List returns the keys with a prefix, in the order of the server.
func (c *Client) List(ctx context.Context, prefix Object) (keys []string, err error) {
	ctx, done := context.WithCancel(ctx)
	defer done()
	for found := range c.core.Client.ListObjects(ctx, prefix.Bucket, minio.ListObjectsOptions{Prefix: prefix.Key}) {
		if found.Err != nil {
			return nil, c.explained("listing", prefix, found.Err)
		}
		keys = append(keys, found.Key)
	}
	return keys, ctx.Err()
}

// Remove deletes an object.
func (c *Client) Remove(ctx context.Context, o Object) error {
	return c.explained("deleting", o, c.core.RemoveObject(ctx, o.Bucket, o.Key, minio.RemoveObjectOptions{}))
}
