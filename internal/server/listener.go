package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nixiemq/nixie/internal/clock"
	"github.com/nixiemq/nixie/internal/config"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire"
)

// A listener accepts the clients of one connector.
type listener struct {
	config config.Listener
	net    net.Listener
	serve  func(context.Context, net.Conn)
	// setBrokers replaces what clients are told of other brokers; it returns how many
	// were told.
	setBrokers func([]string) int
	// moveClients sends clients to other brokers; see openwire.Server.MoveClients.
	moveClients func(most int, dry bool) (could, sent int)
	log         *slog.Logger
	clock       clock.Clock
	files       *descriptors // of the whole process
	open        atomic.Int64 // connections
	once        sync.Once
	// secure is what clients come with TLS to; nil: they come without.
	secure atomic.Pointer[tls.Config]

	refused seldom // of run alone

	failures sync.Mutex
	failed   map[string]*seldom // handshakes, by what can be done about them
}

// listen opens every listener, then lets them accept.
func (s *Server) listen() error {
	for _, c := range s.o.Config.Listeners {
		n, err := net.Listen("tcp", c.Address())
		if err != nil {
			return fmt.Errorf("listener %s: %w", c.URI, err)
		}
		l := &listener{config: c, net: n, log: s.o.Log, clock: s.o.Clock, files: s.files}
		s.listeners = append(s.listeners, l)
		srv, err := s.openWire(l)
		if err != nil {
			return fmt.Errorf("listener %s: %w", c.URI, err)
		}
		l.serve, l.setBrokers, l.moveClients = srv.Serve, srv.SetBrokers, srv.MoveClients
	}
	if s.o.Config.Admin != "" {
		if err := s.listenAdmin(); err != nil {
			return err
		}
	}
	s.setSecure(s.o.Config.Listeners)
	for _, l := range s.listeners {
		s.serving.Go(func() { l.run(s.conns, &s.serving) })
	}
	return nil
}

func (s *Server) openWire(l *listener) (*openwire.Server, error) {
	o := l.config.Options
	inactivity := o.MaxInactivity
	if inactivity == 0 {
		inactivity = -1
	}
	var names func(message.Destination) (message.Destination, error)
	if s.o.Config.Renames(&o) {
		names = func(d message.Destination) (message.Destination, error) { return s.Config().Meant(&o, d) }
	}
	return openwire.New(openwire.Options{
		Names: names, DeliverAt: s.o.Config.DeliverAt(),
		Broker: openwire.On(s.Broker), Advisories: s.advisories, Access: s.access,
		BrokerName: s.o.Config.BrokerName, BrokerID: brokerID(s.started), BrokerURL: l.uri(), Listener: l.name(),
		Wishes: s.wishes, LinkStealing: o.AllowLinkStealing, Directory: s.directory(l),
		Log: s.o.Log, Clock: s.o.Clock,
		Limits:        openwire.Limits{Consumers: o.MaximumConsumers, Producers: o.MaximumProducers},
		MaxFrameBytes: o.MaxFrameBytes, MaxInactivity: inactivity, InitialDelay: o.MaxInactivityInitialDelay,
	})
}

// wishes are the redelivery policies that clients are asked to go by.
func (s *Server) wishes() string {
	text, err := s.Config().Wishes().Properties()
	if err != nil {
		s.o.Log.Warn("clients are not told of the redelivery policies: there are too many", "err", err)
	}
	return text
}

// name is that of the configuration, else the protocol's.
func (l *listener) name() string { return cmp.Or(l.config.Name, l.config.Protocol) }

// uri is the address at which the listener accepts.
func (l *listener) uri() string { return l.config.Scheme() + "://" + l.net.Addr().String() }

func (l *listener) close() { l.once.Do(func() { _ = l.net.Close() }) }

// Waits after an accept that failed for want of file descriptors or memory.
const (
	firstAcceptWait = 5 * time.Millisecond
	lastAcceptWait  = time.Second
)

func (l *listener) run(ctx context.Context, serving *sync.WaitGroup) {
	wait := firstAcceptWait
	for {
		conn, err := l.net.Accept()
		if err != nil {
			if isClosed(err) || ctx.Err() != nil {
				return
			}
			l.log.Warn("accept", "listener", l.uri(), "err", err)
			select {
			case <-time.After(wait):
			case <-ctx.Done():
				return
			}
			wait = min(2*wait, lastAcceptWait)
			continue
		}
		wait = firstAcceptWait
		if limit := l.config.Options.MaximumConnections; limit > 0 && l.open.Load() >= int64(limit) {
			l.refuse(conn, "the listener has all that maximumConnections allows", limit)
			continue
		}
		if !l.files.take() {
			l.refuse(conn, "the process has all that its limit of open files allows, of which the store has its share: raise ulimit -n", int(l.files.clients))
			continue
		}
		l.tune(conn)
		l.open.Add(1)
		serving.Go(func() {
			defer l.files.give()
			defer l.open.Add(-1)
			if c := l.secure.Load(); c != nil {
				var ok bool
				if conn, ok = l.handshake(ctx, conn, c); !ok {
					return
				}
			}
			l.serve(ctx, conn)
		})
	}
}

// refusalEvery is how often it is told that clients are refused: they come again and again.
const refusalEvery = 10 * time.Second

// refuse closes a connection for which there is no room.
func (l *listener) refuse(conn net.Conn, why string, limit int) {
	_ = conn.Close()
	if more, tell := l.refused.now(l.clock.Now()); tell {
		l.log.Warn("connection refused: "+why, "listener", l.uri(), "peer", conn.RemoteAddr(), "limit", limit, "more_like_it", more)
	}
}

// A seldom is something that is told now and then. Its zero value has not been told.
type seldom struct {
	told   time.Time
	untold int // since
}

// now reports whether it is to be told once more, and how often it was not since.
func (s *seldom) now(now time.Time) (more int, tell bool) {
	if !s.told.IsZero() && now.Sub(s.told) < refusalEvery {
		s.untold++
		return 0, false
	}
	more, s.told, s.untold = s.untold, now, 0
	return more, true
}

// tune sets what the connector's options ask of the socket. A socket that refuses
// works all the same.
func (l *listener) tune(conn net.Conn) {
	t, ok := conn.(*net.TCPConn)
	if !ok {
		return
	}
	o := l.config.Options
	_ = t.SetNoDelay(o.NoDelay)
	_ = t.SetKeepAlive(o.KeepAlive)
	if o.SocketBufferBytes > 0 {
		_ = t.SetReadBuffer(o.SocketBufferBytes)
		_ = t.SetWriteBuffer(o.SocketBufferBytes)
	}
}

// An adminListener serves people and their tools over HTTP.
type adminListener struct {
	net    net.Listener
	server *http.Server
}

// Limits of the admin listener, so that nobody holds it.
const (
	adminHeaderTime = 10 * time.Second
	adminIdleTime   = 2 * time.Minute
	adminStopTime   = 2 * time.Second
	adminHeadBytes  = 64 << 10
)

func (s *Server) listenAdmin() error {
	n, err := net.Listen("tcp", s.o.Config.Admin)
	if err != nil {
		return fmt.Errorf("admin listener %s: %w", s.o.Config.Admin, err)
	}
	var handler http.Handler = http.NotFoundHandler()
	if s.o.Admin != nil {
		handler = s.o.Admin(s)
	}
	s.admin = &adminListener{net: n, server: &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: adminHeaderTime,
		IdleTimeout:       adminIdleTime,
		MaxHeaderBytes:    adminHeadBytes,
		ErrorLog:          slog.NewLogLogger(s.o.Log.Handler(), slog.LevelWarn),
	}}
	s.serving.Go(func() {
		if err := s.admin.server.Serve(newBoundedListener(n, s.files.admin)); err != nil && !isClosed(err) {
			s.o.Log.Error("admin listener", "err", err)
		}
	})
	return nil
}

func (a *adminListener) url() string { return "http://" + a.net.Addr().String() }

func (a *adminListener) close() {
	ctx, cancel := context.WithTimeout(context.Background(), adminStopTime)
	defer cancel()
	if err := a.server.Shutdown(ctx); errors.Is(err, context.DeadlineExceeded) {
		_ = a.server.Close()
	}
}
