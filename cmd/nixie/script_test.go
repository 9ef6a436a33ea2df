package main

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"nixie": main, "app": appMain})
}

// TestScripts runs the sessions in testdata, as a user types them. Beside the
// usual commands there are
//
//	start ARGS...  runs 'nixie serve ARGS...' until it is ready. $READY is its ready
//	               line, $OPENWIRE and $ADMIN are the addresses in it
//	terminate      sends it SIGTERM. It must exit with status 0; its log is in the
//	               file log. ("stop" is testscript's own: it ends the script)
//	crash          kills it
//	hangup         sends it SIGHUP and waits until it has logged what came of it
//	until PATTERN COMMAND...
//	               runs a command again and again until its output has a line that fits
//	certificate NAME  makes NAME.pem, for localhost and signed by itself, and NAME.key
//	app            see app_test.go
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(e *testscript.Env) error {
			e.Values[brokerKey{}] = new(served)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"start": start, "terminate": terminate, "crash": crash, "hangup": hangup, "until": until, "certificate": certificate,
		},
	})
}

// TestScriptsAreRunToTheirEnd wants no script to end early: testscript's own command
// stop, which is easily taken for the end of the broker, leaves out all that follows.
func TestScriptsAreRunToTheirEnd(t *testing.T) {
	t.Parallel()
	scripts, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(scripts) == 0 {
		t.Fatal(scripts, err)
	}
	for _, name := range scripts {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if regexp.MustCompile(`(?m)^\s*stop\b`).Match(text) {
			t.Errorf("%s: stop ends the script, and what follows is not run; terminate ends the broker", name)
		}
	}
}

// A served is the broker of one script.
type served struct {
	cmd *exec.Cmd
	log *os.File
}

// brokerKey is under which a script keeps its *served.
type brokerKey struct{}

// patience is how long a broker may take to start or to stop.
const patience = time.Minute

func start(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("a start that fails is: ! exec nixie serve")
	}
	log, err := os.Create(ts.MkAbs("log"))
	ts.Check(err)
	cmd := exec.Command("nixie", append([]string{"serve"}, args...)...)
	cmd.Dir, cmd.Stderr = ts.MkAbs("."), log
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	ts.Defer(func() { // where the script has not stopped it
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = log.Close()
	})
	timer := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	timer.Stop()
	if err != nil {
		ts.Fatalf("nixie serve ended without a ready line: %v; its log:\n%s", err, ts.ReadFile("log"))
	}
	line = strings.TrimSpace(line)
	ts.Setenv("READY", line)
	for field := range strings.FieldsSeq(line) {
		switch name, value, _ := strings.Cut(field, "="); name {
		case "openwire":
			ts.Setenv("OPENWIRE", value)
		case "admin":
			ts.Setenv("ADMIN", value)
		}
	}
	*ts.Value(brokerKey{}).(*served) = served{cmd: cmd, log: log}
}

func terminate(ts *testscript.TestScript, neg bool, args []string) {
	s := ts.Value(brokerKey{}).(*served)
	ts.Check(s.cmd.Process.Signal(syscall.SIGTERM))
	timer := time.AfterFunc(patience, func() { _ = s.cmd.Process.Kill() })
	defer timer.Stop()
	if err := s.cmd.Wait(); err != nil {
		ts.Fatalf("nixie serve: %v; its log:\n%s", err, ts.ReadFile("log"))
	}
}

func crash(ts *testscript.TestScript, neg bool, args []string) {
	s := ts.Value(brokerKey{}).(*served)
	ts.Check(s.cmd.Process.Kill())
	_ = s.cmd.Wait() // it was killed
}

func hangup(ts *testscript.TestScript, neg bool, args []string) {
	s := ts.Value(brokerKey{}).(*served)
	outcomes := func() int {
		log := ts.ReadFile("log")
		return strings.Count(log, "configuration reloaded") + strings.Count(log, "configuration not reloaded")
	}
	before, deadline := outcomes(), time.Now().Add(patience)
	ts.Check(s.cmd.Process.Signal(syscall.SIGHUP))
	for outcomes() == before {
		if time.Now().After(deadline) {
			ts.Fatalf("nothing came of SIGHUP; the log:\n%s", ts.ReadFile("log"))
		}
		time.Sleep(10 * time.Millisecond) // another process's log tells when it is done, and nothing else
	}
}

func certificate(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: certificate NAME")
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ts.Check(err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: args[0]}, NotAfter: time.Now().Add(24 * time.Hour),
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	ts.Check(err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
}

func until(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until PATTERN COMMAND...")
	}
	pattern, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	deadline := time.Now().Add(patience)
	for {
		cmd := exec.Command(args[1], args[2:]...)
		cmd.Dir = ts.MkAbs(".")
		out, err := cmd.CombinedOutput()
		if err == nil && pattern.Match(out) {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%s never said %s, but: %v\n%s", args[1], args[0], err, out)
		}
		time.Sleep(50 * time.Millisecond) // the broker's time is the machine's
	}
}
