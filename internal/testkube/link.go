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

// Link is a way to a server that can go bad: a proxy of TCP connections on another port.
type Link struct {
	// URL leads to the server by the link.
	URL string

	target string
	mu     sync.Mutex
	is     Quality
	pairs  map[*pair]bool
}

// Quality is how a Link is. A good one is the zero value.
type Quality struct {
	// Cut: connections are reset, and new ones at once.
	Cut bool
	// Silent: nothing arrives, and no connection ends. Those that were open then stay so, and carry
	// nothing any more, also when the link is good again.
	Silent bool
	// Delay is how much later everything arrives, in each direction.
	Delay time.Duration
	// Loss is the share of packets that are lost, so that they and all after them arrive when TCP has
	// sent them again: 200 ms later, and twice that with each further loss.
	Loss float64
}

const (
	packetSize  = 1400
	resentFirst = 200 * time.Millisecond
)

// NewLink makes a link to the server of a URL, which is there until the test ends.
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

// pair is a connection to the link and the one from there to the server, which is nil if the link
// was silent. Mute says that nothing is carried any more.
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

// packet is what a connection carries, and when it arrives.
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
			last = due // nothing overtakes what was sent before
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
