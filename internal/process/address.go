package process

import (
	"net"
	"os"
)

// BindAddress is where a program listens that is to listen at an address. An address without a host, such as :8081, is every address of the Pod, so that
// kubectl port-forward, which asks the Pod's loopback address, reaches it. Where the Pod's own address (env POD_IP) is a loopback one, several Pods share
// one network, as on localkube, and each listens at its own.
func BindAddress(address string) string {
	host, port, err := net.SplitHostPort(address)
	if pod := os.Getenv("POD_IP"); err == nil && host == "" && net.ParseIP(pod).IsLoopback() {
		return net.JoinHostPort(pod, port)
	}
	return address
}
