package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/nixiemq/nixie/internal/admin"
	"github.com/nixiemq/nixie/internal/clock"
	"github.com/nixiemq/nixie/internal/config"
	"github.com/nixiemq/nixie/internal/jolokia"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/policy"
	"github.com/nixiemq/nixie/internal/protocol/openwire"
	"github.com/nixiemq/nixie/internal/server"
	"github.com/spf13/cobra"
)

const serveLong = `
Run the broker until SIGTERM or SIGINT, which stop it cleanly: consumers' messages are
given back, nothing that was accepted is lost, and the exit status is 0. A second
signal ends it at once. SIGHUP reads the configuration file again: see 'nixie config
reload'.

Once every listener accepts, one line on standard output says where:

  nixie ready openwire=tcp://127.0.0.1:61616 admin=http://127.0.0.1:8161 data=./nixie-data

Logs go to standard error. Messages are kept in the data directory, which one broker
holds at a time: a second start fails and says who has it.

The configuration file is an activemq.xml, a hornetq-configuration.xml, the broker.xml
of Artemis or NixieMQ's own YAML; which of them is told by its content. What in it is
not honoured is named with file and line: as a warning where leaving it out is safe, as
an error where it would change what happens to a message. Flags win over the file.

An address that others can reach is refused, unless the file says who clients are
(simpleAuthenticationPlugin; for HornetQ and Artemis their files of users beside it) or
--allow-anonymous is given. A file that restricts access, and whose users cannot be
read, is refused, too.`

const serveExample = `
  nixie serve
  nixie serve --config /opt/activemq/conf/activemq.xml --data /var/lib/nixie
  nixie serve --listen 'tcp://127.0.0.1:61616?maximumConnections=500' --listen tcp://127.0.0.1:0
  nixie serve --data :memory: --admin ''`

func serveCommand(e *env) *cobra.Command {
	var o config.Options
	var admin string
	var marks bool
	c := &cobra.Command{
		Use:     "serve",
		Short:   "Run the broker",
		Long:    strings.TrimSpace(serveLong),
		Example: strings.Trim(serveExample, "\n"),
		Args:    arguments(0),
		RunE: func(c *cobra.Command, _ []string) error {
			if c.Flags().Changed("data") && o.Data == "" {
				return usageError{errors.New("--data is empty: name a directory, or :memory: to keep nothing")}
			}
			if c.Flags().Changed("admin") {
				o.Admin = &admin
			}
			if c.Flags().Changed("hand-out-marks") {
				o.HandOutMarks = &marks
			}
			o.LookupEnv = e.lookup
			return serve(c.Context(), e, o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.File, "config", "", "configuration `file`: activemq.xml, hornetq-configuration.xml, Artemis' broker.xml or YAML, told apart by content")
	f.StringVar(&o.Data, "data", "", "data `directory`, or :memory: to keep nothing (default "+config.DefaultDataDir+")")
	f.StringArrayVar(&o.Listen, "listen", nil, "listen at `URI`; may be repeated; overrides the file's connectors (default "+config.DefaultListen+")")
	f.StringVar(&admin, "admin", config.DefaultAdmin, "`host:port` of the admin listener; empty turns it off")
	f.BoolVar(&o.AllowAnonymous, "allow-anonymous", false, "allow listening beyond loopback where the file asks nobody for a password")
	f.StringArrayVarP(&o.Defines, "define", "D", nil, "set `NAME=VALUE` for ${NAME} in the configuration file, or a switch: nixie.cluster lists the brokers that clients may use, others are for HornetQ's and Artemis' files; may be repeated")
	f.BoolVar(&marks, "hand-out-marks", true, "record every hand-out in the store, so that redelivery flags are right after a power cut")
	return c
}

func serve(ctx context.Context, e *env, o config.Options) error {
	signal.Ignore(syscall.SIGPIPE) // who reads the log may go; the broker stays
	log := slog.New(slog.NewTextHandler(e.err, nil))
	cfg, notices, err := config.Load(o)
	for _, n := range notices {
		log.Warn(n.String())
	}
	if err != nil {
		return err
	}
	if o.File != "" {
		surprises(log, o.File, policy.Lint(cfg, notices, policy.NewQuestion(message.Destination{}).Client))
	}
	hangup := make(chan os.Signal, 1) // one is enough: the file is read after it came
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	so := server.Options{Config: cfg, Log: log, Admin: adminOf(ctx, log)}
	if o.File != "" {
		so.Load = func() (*config.Config, []config.Notice, error) { return config.Load(o) }
	}
	s, err := server.Start(ctx, so)
	if err != nil {
		return startError(err, so.Config.DataDir)
	}
	if _, err := fmt.Fprintln(e.out, s.Ready()); err != nil {
		log.Warn("the ready line could not be written", "err", err)
	}
	for {
		select {
		case <-hangup:
			if _, err := s.Reload(ctx, false); errors.Is(err, message.ErrState) {
				log.Warn("SIGHUP: nothing reloaded", "err", err)
			} // other errors are logged already
			continue
		case <-ctx.Done():
		}
		log.Info("stopping")
		s.Stop()
		return nil
	}
}

// startError adds to the error of a start what can be done about it.
func startError(err error, dir string) error {
	var listen *net.OpError
	var file *fs.PathError
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%w: stop what listens there, or choose another address with --listen or --admin", err)
	case errors.As(err, &listen):
		return fmt.Errorf("%w: choose an address of this machine, and a port that this user may open, with --listen or --admin", err)
	case server.NoRoom(err):
		return fmt.Errorf("%w\nFree space on the file system of %s, then start again: nothing that was acknowledged is lost", err, dir)
	case server.InUse(err):
		return fmt.Errorf("%w: stop that broker, or choose another directory with --data", err)
	case errors.As(err, &file):
		return fmt.Errorf("%w: choose a directory that this user may write to, with --data", err)
	}
	return err
}

// surprises logs that there is more to know about a file than what was left out.
func surprises(log *slog.Logger, file string, r policy.Report) {
	if r.Clean() {
		return
	}
	var codes []string
	for _, f := range r.Findings {
		if f.Severity != policy.SeverityNote && !slices.Contains(codes, f.Code) {
			codes = append(codes, f.Code)
		}
	}
	log.Warn("what the configuration says may surprise: see 'nixie policy lint --config "+file+"'",
		"findings", r.Errors+r.Warnings, "about", strings.Join(codes, ","))
}

// adminOf makes the handler of the admin listener; ctx ends when the broker is to
// stop.
func adminOf(ctx context.Context, log *slog.Logger) func(*server.Server) http.Handler {
	return func(s *server.Server) http.Handler {
		poster := &openwire.Poster{Broker: s.Broker, Clock: clock.System{}, DeliverAt: s.Config().DeliverAt()}
		h, err := admin.New(admin.Options{
			Broker:      s.Broker,
			Access:      s.Access(),
			Version:     version(),
			Started:     s.Started(),
			Log:         log,
			Config:      s.Config,
			Reload:      reloadOf(s),
			MoveClients: s.MoveClients,
			Stopping:    func() bool { return ctx.Err() != nil },
			Space: func() (admin.Space, error) {
				space, err := s.Space()
				return admin.Space{FreeBytes: space.FreeBytes, TotalBytes: space.TotalBytes, UsedBytes: space.UsedBytes}, err
			},
			Body: func(m *message.Message, limit int) (admin.Body, error) {
				shown, err := openwire.ShowBody(m, limit)
				return admin.Body{Text: shown.Text, Bytes: shown.Bytes, Cut: shown.Cut}, err
			},
			Properties: openwire.Properties,
			Send:       poster.Send,
			Connectors: func() (all []jolokia.Connector) {
				for _, a := range s.Addresses() {
					all = append(all, jolokia.Connector{Name: a[0], URI: a[1]})
				}
				return all
			},
		})
		if err != nil {
			panic("a server that has started has a broker: " + err.Error())
		}
		return h
	}
}

// reloadOf is a reload for the admin listener.
func reloadOf(s *server.Server) func(context.Context, bool) (*admin.Reloaded, error) {
	return func(ctx context.Context, dry bool) (*admin.Reloaded, error) {
		r, err := s.Reload(ctx, dry)
		if err != nil {
			return nil, err
		}
		reply := &admin.Reloaded{File: r.File, Changes: r.Changes}
		for _, n := range r.Warnings {
			reply.Warnings = append(reply.Warnings, n.String())
		}
		return reply, nil
	}
}
