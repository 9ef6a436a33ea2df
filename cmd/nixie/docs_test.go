package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPolicyPageShowsWhatIsPrinted pastes the commands of docs/policies.md, with the files
// that it shows, and wants the answers that stand below them.
func TestPolicyPageShowsWhatIsPrinted(t *testing.T) {
	page, err := os.ReadFile("../../docs/policies.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Chdir(dir)
	blocks := indented(string(page))
	names := regexp.MustCompile("`([a-z]+\\.xml)`:\n\n    <broker").FindAllStringSubmatch(string(page), -1)
	asked := 0
	for _, b := range blocks {
		command, want, isCommand := strings.Cut(strings.TrimPrefix(b, "$ nixie "), "\n")
		switch {
		case strings.HasPrefix(b, "<broker"):
			if len(names) == 0 {
				t.Fatal("a file without a name before it")
			}
			if err := os.WriteFile(filepath.Join(dir, names[0][1]), []byte(b), 0o600); err != nil {
				t.Fatal(err)
			}
			names = names[1:]
		case strings.HasPrefix(b, "$ nixie ") && isCommand:
			asked++
			var out bytes.Buffer
			run(t.Context(), strings.Fields(command), &out, &out)
			if diff := cmp.Diff(trimmed(want), trimmed(out.String())); diff != "" {
				t.Errorf("nixie %s (-page +program):\n%s", command, diff)
			}
		}
	}
	if asked < 4 {
		t.Errorf("the page shows %d commands with their answers; it had 4", asked)
	}
}

// indented are the blocks of a page that stand four columns in, without them.
func indented(page string) (blocks []string) {
	var block []string
	for line := range strings.Lines(page + "end\n") {
		text, in := strings.CutPrefix(line, "    ")
		switch {
		case in:
			block = append(block, text)
		case strings.TrimSpace(line) == "" && block != nil:
			block = append(block, "\n")
		case block != nil:
			blocks, block = append(blocks, strings.Join(block, "")), nil
		}
	}
	return blocks
}

// trimmed are the lines of a text without blanks at their ends and empty ones around.
func trimmed(text string) []string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return lines
}
