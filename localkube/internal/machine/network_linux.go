package machine

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

const bridgeName = "localkube0"

// bridgeAddress is fixed. A bridge without an address of its own takes a port's, and all machines
// would lose it with the end of that machine.
var bridgeAddress = net.HardwareAddr{0x02, 'l', 'k', 0, 0, 1}

// connect gives the machine a link to the bridge and an address.
func connect(config Config, pid int) error {
	bridge, err := ensureBridge()
	if err != nil {
		return fmt.Errorf("making bridge %s: %w", bridgeName, err)
	}
	name := LinkName(config.ID)
	// The kernel may not yet have removed the link of an ended machine.
	if old, err := netlink.LinkByName(name); err == nil {
		if err := netlink.LinkDel(old); err != nil && !notThere(err) {
			return fmt.Errorf("removing the old link %s: %w", name, err)
		}
	}
	attributes := netlink.NewLinkAttrs()
	attributes.Name, attributes.MasterIndex = name, bridge.Attrs().Index
	link := &netlink.Veth{
		LinkAttrs: attributes, PeerName: "eth0", PeerNamespace: netlink.NsPid(pid), PeerHardwareAddr: hardwareAddress(config.Address),
	}
	if err := netlink.LinkAdd(link); err != nil {
		return fmt.Errorf("making link %s: %w", name, err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("starting link %s: %w", name, err)
	}
	return configureInside(pid, config.Address)
}

// hardwareAddress returns the same address at each boot of a machine. Others remember it for half a
// minute, and would not reach a machine with a new one meanwhile.
func hardwareAddress(ip netip.Addr) net.HardwareAddr {
	four := ip.As4()
	return append(net.HardwareAddr{0x02, 'l'}, four[:]...)
}

func ensureBridge() (netlink.Link, error) {
	attributes := netlink.NewLinkAttrs()
	attributes.Name, attributes.HardwareAddr = bridgeName, bridgeAddress
	if err := netlink.LinkAdd(&netlink.Bridge{LinkAttrs: attributes}); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	bridge, err := netlink.LinkByName(bridgeName)
	if err != nil {
		return nil, err
	}
	if err := netlink.AddrReplace(bridge, address(Gateway)); err != nil {
		return nil, fmt.Errorf("giving it address %s: %w", Gateway, err)
	}
	return bridge, netlink.LinkSetUp(bridge)
}

func configureInside(pid int, ip netip.Addr) error {
	namespace, err := netns.GetFromPid(pid)
	if err != nil {
		return fmt.Errorf("opening the machine's network: %w", err)
	}
	defer func() { _ = namespace.Close() }() // It was only read.
	inside, err := netlink.NewHandleAt(namespace)
	if err != nil {
		return fmt.Errorf("opening the machine's network: %w", err)
	}
	defer inside.Close()
	link, err := inside.LinkByName("eth0")
	if err != nil {
		return fmt.Errorf("finding the machine's link: %w", err)
	}
	if err := inside.AddrAdd(link, address(ip)); err != nil {
		return fmt.Errorf("giving the machine address %s: %w", ip, err)
	}
	if err := inside.LinkSetUp(link); err != nil {
		return fmt.Errorf("starting the machine's link: %w", err)
	}
	if err := inside.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Gw: Gateway.AsSlice()}); err != nil {
		return fmt.Errorf("giving the machine a default route: %w", err)
	}
	return nil
}

func address(ip netip.Addr) *netlink.Addr {
	return &netlink.Addr{IPNet: &net.IPNet{IP: ip.AsSlice(), Mask: net.CIDRMask(Network.Bits(), ip.BitLen())}}
}

// disconnect removes the machine's link. With the last one it removes the bridge and the
// directories for mounts. The caller holds the lock.
func disconnect(id string) error {
	if link, err := netlink.LinkByName(LinkName(id)); err == nil {
		if err := netlink.LinkDel(link); err != nil && !notThere(err) {
			return fmt.Errorf("removing link %s: %w", LinkName(id), err)
		}
	}
	bridge, err := netlink.LinkByName(bridgeName)
	if errors.As(err, new(netlink.LinkNotFoundError)) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("finding bridge %s: %w", bridgeName, err)
	}
	links, err := netlink.LinkList()
	if err != nil {
		return fmt.Errorf("listing the links: %w", err)
	}
	for _, link := range links {
		if link.Attrs().MasterIndex == bridge.Attrs().Index {
			return nil
		}
	}
	if err := netlink.LinkDel(bridge); err != nil && !notThere(err) {
		return fmt.Errorf("removing bridge %s: %w", bridgeName, err)
	}
	for _, path := range mountPoints {
		_ = os.Remove(path) // It stays while it is in use, that is, not empty.
	}
	return nil
}
