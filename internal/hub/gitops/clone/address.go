package clone

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-git/go-git/v5/plumbing/transport/client"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
)

const (
	// dialTimeout bounds the connection to a server.
	dialTimeout = 10 * time.Second
	// silence is the longest time for a server to send nothing. Git's servers send a byte every five
	// seconds while they prepare a pack.
	silence = time.Minute
)

// errSilent is the error for a server that sends nothing.
var errSilent = fmt.Errorf("the server has sent nothing for %s", silence)

// errLocal refuses addresses of the machine or the network of the hub.
var errLocal = errors.New("its address is loopback, link-local, multicast or unspecified, where no repository is")

// scpLike matches user@host:path.
var scpLike = regexp.MustCompile(`^(?:([^@/]+)@)?([^:/]+):([^/:].*|/[^/].*)$`)

// ParseURL returns the URL of a repository, also for the form user@host:path. Only http, https and
// ssh are allowed.
func ParseURL(repo string) (*url.URL, error) {
	if repo == "" {
		return nil, errors.New("spec.repo is empty: set it to the address of the repository")
	}
	if parts := scpLike.FindStringSubmatch(repo); parts != nil && !strings.Contains(repo, "://") {
		address := &url.URL{Scheme: "ssh", Host: parts[2], Path: "/" + strings.TrimPrefix(parts[3], "/")}
		if parts[1] != "" {
			address.User = url.User(parts[1])
		}
		return address, nil
	}
	address, err := url.Parse(repo)
	if err != nil {
		return nil, errors.New("spec.repo is no valid URL") // the error of url.Parse quotes a password
	}
	switch {
	case address.Scheme != "http" && address.Scheme != "https" && address.Scheme != "ssh":
		return nil, fmt.Errorf("spec.repo has the scheme %q: use https, http or ssh", address.Scheme)
	case address.Hostname() == "":
		return nil, errors.New("spec.repo names no host")
	}
	if _, secret := address.User.Password(); secret {
		return nil, errors.New("spec.repo contains a password, which everyone who reads the GitRepo sees: put it into the Secret that " +
			"spec.clientSecretName names")
	}
	return address, nil
}

// Dialer connects to the servers of repositories. Its zero value refuses loopback addresses.
type Dialer struct{ AllowLoopback bool }

// Install makes Git use the dialer for http and https, and no other protocol but ssh. It holds for
// the whole process.
func (d Dialer) Install() {
	web := githttp.NewClient(&http.Client{Transport: d.Transport()})
	client.InstallProtocol("http", web)
	client.InstallProtocol("https", web)
	client.InstallProtocol("file", nil)
	client.InstallProtocol("git", nil)
}

// Transport returns a transport with connections by the dialer.
func (d Dialer) Transport() *http.Transport {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	dialer := &net.Dialer{Timeout: dialTimeout, Control: d.control}
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &impatient{conn}, nil
	}
	return transport
}

// impatient is a connection that ends when the server sends nothing for silence.
type impatient struct{ net.Conn }

// Read gives the server time for its next bytes.
func (i *impatient) Read(p []byte) (int, error) {
	if err := i.SetReadDeadline(time.Now().Add(silence)); err != nil {
		return 0, err
	}
	n, err := i.Conn.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = errSilent
	}
	return n, err
}

func (d Dialer) control(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("reading the address %s: %w", address, err)
	}
	return d.check(to.Addr())
}

func (d Dialer) check(address netip.Addr) error {
	address = address.Unmap()
	if address.IsUnspecified() || address.IsLinkLocalUnicast() || address.IsMulticast() || address.IsLoopback() && !d.AllowLoopback {
		return errLocal
	}
	return nil
}

// pinned returns the URL of an ssh server with an allowed address instead of its name, because the
// library's ssh client resolves names itself.
func (d Dialer) pinned(ctx context.Context, address *url.URL) (*url.URL, error) {
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", address.Hostname())
	if err != nil {
		return nil, fmt.Errorf("looking up %s: %w", address.Hostname(), err)
	}
	err = errLocal
	for _, ip := range found {
		if err = d.check(ip); err == nil {
			pinned := *address
			pinned.Host = net.JoinHostPort(ip.Unmap().String(), portOf(address))
			return &pinned, nil
		}
	}
	return nil, err
}

func portOf(address *url.URL) string {
	if port := address.Port(); port != "" {
		return port
	}
	return strconv.Itoa(22)
}
