package config

import (
	"path/filepath"
	"strings"
)

// includeSpace is the namespace of XInclude, by which a broker.xml may be spread
// over several files.
const includeSpace = "http://www.w3.org/2001/XInclude"

// include puts the roots of other files in the place of the include elements that
// name them, to any depth.
func (w *coreFile) include(e *element, depth int) {
	for i, c := range e.children {
		if c.space != includeSpace || c.name != "include" {
			w.include(c, depth)
			continue
		}
		if other := w.included(c, depth); other != nil {
			e.children[i] = other
			w.include(other, depth+1)
		} else {
			e.children[i] = &element{space: includeSpace, file: c.file, line: c.line} // it was reported
		}
	}
}

// included reads the file that an include element names; nil: it cannot be had,
// and that was reported.
func (w *coreFile) included(c *element, depth int) *element {
	href, err := w.placeholders(c.file).expand(c.attr("href"))
	switch {
	case err != nil:
		w.fail(c.at(err.Error()))
		return nil
	case href == "" || strings.Contains(href, "://") && !strings.HasPrefix(href, "file://"):
		w.fail(c.at("names no file with href"))
		return nil
	}
	if w.includes++; depth >= maxExpansionDepth || w.includes > maxImports {
		w.fail(c.at("is one of too many includes, or leads back to itself"))
		return nil
	}
	path := strings.TrimPrefix(href, "file://")
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(c.file), path)
	}
	raw, err := w.readFile(path)
	if err != nil {
		w.fail(c.at(path + " cannot be read: " + err.Error()))
		return nil
	}
	root, problem := parseXML(path, raw)
	if problem != nil {
		w.fail(*problem)
		return nil
	}
	return root
}
