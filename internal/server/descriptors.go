package server

import (
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"github.com/nixiemq/nixie/internal/message"
)

// Every connection takes a file descriptor, and so does every file of the store. Of the
// two the store goes first: it ends where it cannot open a file, and the broker with it,
// while a client that is refused may come again.
const (
	// storeShare of the descriptors are for the store's tables, from leastTables to
	// mostTables, which is what the engine takes unless it is told.
	storeShare  = 4
	leastTables = 80
	mostTables  = 1000
	// adminShare of them are for connections to the admin listener, from leastAdmin to
	// mostAdmin.
	adminShare = 16
	leastAdmin = 16
	mostAdmin  = 256
	// ownFiles are for everything else: logs and tables that are being written, listeners,
	// the standard streams, a configuration file that is read.
	ownFiles = 48
	// leastClients is how many clients are worth a start.
	leastClients = 8
)

// descriptors share out what the process may open.
type descriptors struct {
	tables, admin int
	clients       int64
	open          atomic.Int64 // clients, of all listeners
}

// shareOut shares out so many descriptors; 0: there is no limit.
func shareOut(limit uint64) (*descriptors, error) {
	if limit == 0 || limit > 1<<30 {
		limit = 1 << 30
	}
	n := int64(limit)
	d := &descriptors{tables: int(min(max(n/storeShare, leastTables), mostTables)), admin: int(min(max(n/adminShare, leastAdmin), mostAdmin))}
	d.clients = n - int64(d.tables) - int64(d.admin) - ownFiles
	if d.clients < leastClients {
		return nil, fmt.Errorf("the process may open %d files (ulimit -n), and needs %d at least: raise the limit, which bounds the number of clients, too: %w",
			limit, leastTables+leastAdmin+ownFiles+leastClients, message.ErrOverLimit)
	}
	return d, nil
}

// take takes a descriptor for a client. It reports whether there is one.
func (d *descriptors) take() bool {
	if d.open.Add(1) <= d.clients {
		return true
	}
	d.open.Add(-1)
	return false
}

func (d *descriptors) give() { d.open.Add(-1) }

// A boundedListener accepts no more connections than there is room for; others wait.
type boundedListener struct {
	net.Listener
	room   chan struct{} // one token for each open connection
	closed chan struct{}
	once   sync.Once
}

func newBoundedListener(l net.Listener, n int) *boundedListener {
	return &boundedListener{Listener: l, room: make(chan struct{}, n), closed: make(chan struct{})}
}

// Accept waits for room, and then for a connection.
func (l *boundedListener) Accept() (net.Conn, error) {
	select {
	case l.room <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.room
		return nil, err
	}
	return &boundedConn{Conn: c, l: l}, nil
}

// Close ends the listener, and who waits for room.
func (l *boundedListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// A boundedConn gives its room back when it is closed.
type boundedConn struct {
	net.Conn
	l    *boundedListener
	once sync.Once
}

// Close closes the connection.
func (c *boundedConn) Close() error {
	c.once.Do(func() { <-c.l.room })
	return c.Conn.Close()
}
