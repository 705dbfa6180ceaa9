package component

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"
)

const (
	// etcdTickMilliseconds and etcdElectionMilliseconds are long, because ticks are most of the cost
	// of an idle etcd. A single member leads after one to five of them, the fewest possible for an
	// election.
	etcdTickMilliseconds     = 300
	etcdElectionMilliseconds = 1500
	// etcdBatchInterval is a second instead of a tenth. Without fsync the log is as safe as the data,
	// so the data may follow the log later.
	etcdBatchInterval = time.Second
	etcdReadyTimeout  = 60 * time.Second
	etcdSlowRequest   = time.Second
	etcdQuotaBytes    = 4 << 30
	// etcdPeerURL is in the data, but has no listener.
	etcdPeerURL = "http://127.0.0.1:2380"
)

type etcdOptions struct {
	dataDir, clientURL        string
	certFile, keyFile, caFile string
}

// newEtcdCommand runs a single etcd member. It never calls fsync: starting and testing get faster,
// and the data may be lost if the machine is switched off.
func newEtcdCommand() *cobra.Command {
	var o etcdOptions
	command := &cobra.Command{
		Use:          Etcd,
		SilenceUsage: true,
		Args:         cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return runEtcd(ctx, o)
		},
	}
	flags := command.Flags()
	flags.StringVar(&o.dataDir, "data-dir", "", "data directory")
	flags.StringVar(&o.clientURL, "listen-client-url", "", "URL to serve clients on")
	flags.StringVar(&o.certFile, "cert-file", "", "serving certificate")
	flags.StringVar(&o.keyFile, "key-file", "", "key of the serving certificate")
	flags.StringVar(&o.caFile, "trusted-ca-file", "", "CA of the client certificates")
	return command
}

func runEtcd(ctx context.Context, o etcdOptions) error {
	config, err := etcdConfig(o)
	if err != nil {
		return err
	}
	server, err := embed.StartEtcd(config)
	if err != nil {
		return fmt.Errorf("starting etcd: %w", err)
	}
	defer server.Close()
	select {
	case <-server.Server.ReadyNotify():
	case err := <-server.Err():
		return fmt.Errorf("running etcd: %w", err)
	case <-time.After(etcdReadyTimeout):
		return errors.New("starting etcd: no leader in time")
	case <-ctx.Done():
		return nil
	}
	select {
	case err := <-server.Err():
		return fmt.Errorf("running etcd: %w", err)
	case <-server.Server.StopNotify():
		return errors.New("running etcd: it stopped by itself")
	case <-ctx.Done():
		return nil
	}
}

func etcdConfig(o etcdOptions) (*embed.Config, error) {
	client, err := url.Parse(o.clientURL)
	if err != nil {
		return nil, fmt.Errorf("reading --listen-client-url: %w", err)
	}
	peer, err := url.Parse(etcdPeerURL)
	if err != nil {
		return nil, fmt.Errorf("reading the peer URL: %w", err)
	}
	config := embed.NewConfig()
	config.Name = "localkube"
	config.Dir = o.dataDir
	config.UnsafeNoFsync = true
	config.TickMs = etcdTickMilliseconds
	config.ElectionMs = etcdElectionMilliseconds
	config.BackendBatchInterval = etcdBatchInterval
	config.QuotaBackendBytes = etcdQuotaBytes
	config.ListenPeerUrls = nil
	config.AdvertisePeerUrls = []url.URL{*peer}
	config.ListenClientUrls = []url.URL{*client}
	config.AdvertiseClientUrls = []url.URL{*client}
	// Without HTTP/1 on the same port, etcd serves gRPC itself, for half of the processor time behind
	// Go's HTTP server. The other port has no clients.
	config.ListenClientHttpUrls = []url.URL{{Scheme: client.Scheme, Host: net.JoinHostPort(client.Hostname(), "0")}}
	config.EnableGRPCGateway = false
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	config.ClientTLSInfo = transport.TLSInfo{
		CertFile: o.certFile, KeyFile: o.keyFile,
		TrustedCAFile: o.caFile, ClientCertAuth: true,
	}
	config.WarningUnaryRequestDuration = etcdSlowRequest
	config.LogLevel = "warn"
	config.LogOutputs = []string{"stderr"}
	return config, nil
}
