package nixie_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/nixiemq/nixie"

// tools are packages that only tests and generators use; they may import anything.
var tools = []string{"store/storetest", "store/errstore", "protocol/openwire/wire/gen", "protocol/openwire/openwiretest"}

// TestRoomsImportOnlyWhatTheTableAllows compares the imports of every room with
// the table in docs/architecture.md. A new room needs a row there; a new import
// needs a reason good enough to change the table.
func TestRoomsImportOnlyWhatTheTableAllows(t *testing.T) {
	allowed := table(t)
	for room, imports := range rooms(t) {
		if slices.Contains(tools, room) {
			continue
		}
		may, ok := allowed[room]
		if !ok {
			t.Errorf("room %s has no row in docs/architecture.md: say there what it is for and what it may import", room)
			continue
		}
		for _, i := range imports {
			if !slices.Contains(may, i) {
				t.Errorf("room %s imports %s, which docs/architecture.md does not allow: move the code to where it belongs, or change the table and say why", room, i)
			}
		}
	}
	for room := range allowed {
		if _, ok := rooms(t)[room]; !ok {
			t.Errorf("docs/architecture.md has a row for %s, and there is no such room", room)
		}
	}
}

// table reads the rows of the page.
func table(t *testing.T) map[string][]string {
	t.Helper()
	page, err := os.ReadFile("docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][]string{}
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, "|")
		if len(cells) < 5 || !strings.HasPrefix(strings.TrimSpace(cells[1]), "`") {
			continue
		}
		var may []string
		for name := range strings.SplitSeq(cells[3], ",") {
			if name = strings.TrimSpace(name); name != "" {
				may = append(may, name)
			}
		}
		rows[strings.Trim(strings.TrimSpace(cells[1]), "`")] = may
	}
	if len(rows) < 10 {
		t.Fatalf("docs/architecture.md: only %d rows found in its table", len(rows))
	}
	return rows
}

// rooms lists the packages and which of the others each imports, by short names.
func rooms(t *testing.T) map[string][]string {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", "./...")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	found := map[string][]string{}
	for dec := json.NewDecoder(out); ; {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		room := short(p.ImportPath)
		if room == "" {
			continue
		}
		found[room] = nil
		for _, i := range p.Imports {
			if s := short(i); s != "" {
				found[room] = append(found[room], s)
			}
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	return found
}

// short is a package's name in the table; "" if it is not ours.
func short(path string) string {
	rest, ok := strings.CutPrefix(path, module+"/")
	if !ok {
		return ""
	}
	return strings.TrimPrefix(rest, "internal/")
}
