package nixie_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestPagesNameTheClassesThatShowWhatTheySay: what docs/jms.md says works is shown by a
// class of the interop suite that is there, and the suite's page has a row for each.
func TestPagesNameTheClassesThatShowWhatTheySay(t *testing.T) {
	files, err := filepath.Glob("interop/*/java/nixie/interop/*Test.java")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d classes found, %v", len(files), err)
	}
	var classes []string
	for _, f := range files {
		classes = append(classes, strings.TrimSuffix(filepath.Base(f), ".java"))
	}
	class := regexp.MustCompile("`([A-Za-z]+Test)`")
	named := map[string][]string{}
	for _, page := range []string{"docs/jms.md", "interop/README.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range class.FindAllStringSubmatch(string(text), -1) {
			named[page] = append(named[page], m[1])
			if !slices.Contains(classes, m[1]) {
				t.Errorf("%s names %s, and there is no such class", page, m[1])
			}
		}
		for line := range strings.Lines(string(text)) {
			cells := strings.Split(strings.TrimSpace(line), "|")
			if page == "docs/jms.md" && strings.HasPrefix(line, "| **") && (len(cells) != 6 || strings.TrimSpace(cells[4]) == "") {
				t.Errorf("%s: nothing shows %s", page, cells[1])
			}
		}
	}
	for _, c := range classes {
		if !slices.Contains(named["interop/README.md"], c) {
			t.Errorf("interop/README.md has no row for %s", c)
		}
	}
}
