package notify

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
	"github.com/muster-fleet/muster/internal/version"
)

const (
	// requestTimeout is long: a receiver need only store a message.
	requestTimeout = 10 * time.Second
	// maxAnswer bounds the bytes read of an answer; a fully read answer frees the connection for
	// reuse.
	maxAnswer = 64 << 10
	// idleTimeout ends an unused connection.
	idleTimeout = 30 * time.Second
)

// sendError is the reason why a request failed.
type sendError struct {
	error
	// refused: the receiver never accepts this message.
	refused bool
	// after is the pause requested by the receiver; zero without one.
	after time.Duration
}

// send sends a message once.
func (w *worker) send(ctx context.Context, m message) *sendError {
	sink, found := w.Notifier.sink(w.name)
	if !found {
		return &sendError{error: errors.New("the settings no longer have the sink")}
	}
	if w.web == nil || !reflect.DeepEqual(w.to, sink) {
		w.to, w.web, w.keys = sink, clientOf(sink), keys{}
	}
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	now := w.clock.Now()
	if err := w.readKeys(ctx, now); err != nil {
		return &sendError{error: err}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, sink.URL, bytes.NewReader(m.body))
	if err != nil {
		return &sendError{error: errors.New("the url is not valid")} // the error contains the URL
	}
	stamp := strconv.FormatInt(now.Unix(), 10)
	request.Header.Set("Content-Type", "application/cloudevents+json; charset=UTF-8")
	request.Header.Set("User-Agent", "muster-hub/"+version.Version)
	request.Header.Set("Webhook-Id", m.id)
	request.Header.Set("Webhook-Timestamp", stamp)
	request.Header.Set("Webhook-Signature", w.keys.sign(m.id, stamp, m.body))
	response, err := w.web.Do(request)
	if err != nil {
		return &sendError{error: w.withoutURL(err)}
	}
	defer func() { _ = response.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, maxAnswer)) // only the status counts
	return judge(response, now)
}

// withoutURL returns the cause of a failed request, without the URL in it.
func (w *worker) withoutURL(err error) error {
	var failed *url.Error
	if errors.As(err, &failed) {
		if failed.Timeout() {
			return fmt.Errorf("the receiver did not answer within %s", w.timeout)
		}
		return failed.Err
	}
	return err
}

// judge returns the meaning of an answer; nil if the receiver has the message.
func judge(response *http.Response, now time.Time) *sendError {
	status := response.StatusCode
	switch {
	case status >= 200 && status < 300:
		return nil
	case status >= 300 && status < 400:
		return &sendError{error: fmt.Errorf("the receiver answers %d, a redirect, which the hub does not follow: set url to its new address",
			status)}
	}
	failed := &sendError{error: fmt.Errorf("the receiver answers %d %s", status, http.StatusText(status)),
		after: retryAfter(response.Header.Get("Retry-After"), now)}
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		failed.error = fmt.Errorf("%w: check that the receiver has the key of the Secret", failed.error)
	case http.StatusBadRequest, http.StatusGone, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType,
		http.StatusUnprocessableEntity:
		failed.refused = true
	}
	return failed
}

// retryAfter reads the header Retry-After: seconds, or a time.
func retryAfter(text string, now time.Time) time.Duration {
	if seconds, err := strconv.Atoi(strings.TrimSpace(text)); err == nil {
		return time.Duration(max(0, min(seconds, int(longestAsked/time.Second)))) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// clientOf returns the client of a sink. It follows no redirect and dials only permitted addresses.
func clientOf(sink settings.Sink) *http.Client {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if sink.CABundle != "" {
		config.RootCAs = x509.NewCertPool()
		config.RootCAs.AppendCertsFromPEM([]byte(sink.CABundle))
	}
	dialer := &net.Dialer{Timeout: requestTimeout, Control: control(sink)}
	return &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, TLSClientConfig: config, ForceAttemptHTTP2: true,
			MaxIdleConns: 1, IdleConnTimeout: idleTimeout, MaxResponseHeaderBytes: maxAnswer,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// control returns the check of each dialed address, after the name resolution. The administrator's
// proxy may have a loopback address.
func control(sink settings.Sink) func(string, string, syscall.RawConn) error {
	if address, err := url.Parse(sink.URL); err == nil {
		proxy, err := http.ProxyFromEnvironment(&http.Request{URL: address})
		sink.AllowLoopback = sink.AllowLoopback || err == nil && proxy != nil
	}
	return func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return errors.New("its address cannot be read")
		}
		return sink.CheckAddress(to.Addr())
	}
}
