package process

import (
	"net"
	"os"
)

// BindAddress returns the address to listen on for a configured address. An address without a host,
// such as :8081, means every address of the Pod, so that kubectl port-forward reaches the loopback
// address.
//
// If the Pod's own address (env POD_IP) is a loopback address, several Pods share one network, as
// on localkube. Each then listens on its own address.
func BindAddress(address string) string {
	host, port, err := net.SplitHostPort(address)
	if pod := os.Getenv("POD_IP"); err == nil && host == "" && net.ParseIP(pod).IsLoopback() {
		return net.JoinHostPort(pod, port)
	}
	return address
}
