package testkube

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"
)

// Link is a breakable connection to a server: a proxy of TCP connections on another port.
type Link struct {
	// URL is the URL of the server by the link.
	URL string

	target string
	mu     sync.Mutex
	is     Quality
	pairs  map[*pair]bool
}

// Quality is the state of a Link. The zero value is a good link.
type Quality struct {
	// Cut: connections are reset, also new ones.
	Cut bool
	// Silent: nothing arrives, and no connection ends. Connections from that time stay open and dead,
	// even after the link is good again.
	Silent bool
	// Delay is the delay of all data, in each direction.
	Delay time.Duration
	// Loss is the share of lost packets. A lost packet, and all after it, arrive with the
	// retransmission of TCP: 200 ms later, doubled with each further loss.
	Loss float64
}

const (
	packetSize  = 1400
	resentFirst = 200 * time.Millisecond
)

// NewLink returns a link to the server of a URL. It lasts until the test ends.
func NewLink(t testing.TB, server string) *Link {
	t.Helper()
	target, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &Link{target: target.Host, pairs: map[*pair]bool{}}
	target.Host = listener.Addr().String()
	l.URL = target.String()
	t.Cleanup(func() {
		_ = listener.Close()
		l.Become(Quality{Cut: true})
	})
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			go l.carry(near)
		}
	}()
	return l
}

// Become changes the link.
func (l *Link) Become(q Quality) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.is = q
	for p := range l.pairs {
		if q.Cut {
			p.close()
		}
		p.mute = p.mute || q.Silent
	}
}

// pair is a connection to the link and the connection from there to the server. far is nil if the
// link let nothing through at the start. mute is set if the pair no longer carries data.
type pair struct {
	near, far net.Conn
	mute      bool
}

func (p *pair) close() {
	for _, connection := range []net.Conn{p.near, p.far} {
		if tcp, ok := connection.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // a reset
			_ = tcp.Close()
		}
	}
}

func (l *Link) carry(near net.Conn) {
	l.mu.Lock()
	cut, silent := l.is.Cut, l.is.Silent
	p := &pair{near: near, mute: silent}
	l.pairs[p] = true
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.pairs, p)
		p.close()
	}()
	if cut {
		return
	}
	if silent {
		_, _ = io.Copy(io.Discard, near)
		return
	}
	far, err := (&net.Dialer{Timeout: 5 * time.Second}).Dial("tcp", l.target)
	if err != nil {
		return
	}
	l.mu.Lock()
	p.far = far
	l.mu.Unlock()
	ended := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
		go func() {
			l.pump(p, way[0], way[1])
			ended <- struct{}{}
		}()
	}
	<-ended
}

// packet is data on a connection, with its time of arrival.
type packet struct {
	data []byte
	due  time.Time
}

func (l *Link) pump(p *pair, from, to net.Conn) {
	way := make(chan packet, 1024)
	defer close(way)
	go func() {
		for next := range way {
			time.Sleep(time.Until(next.due))
			if !l.muted(p) {
				_, _ = to.Write(next.data) // the reader sees the end
			}
		}
	}()
	var last time.Time
	for {
		data := make([]byte, packetSize)
		n, err := from.Read(data)
		if err != nil {
			return
		}
		if due := time.Now().Add(l.lateness()); due.After(last) {
			last = due // keeps the order
		}
		way <- packet{data[:n], last}
	}
}

func (l *Link) lateness() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	late := l.is.Delay
	for again := resentFirst; rand.Float64() < l.is.Loss; again *= 2 {
		late += again
	}
	return late
}

func (l *Link) muted(p *pair) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return p.mute
}
