package config

import (
	"strconv"
	"strings"
)

// parseProperties reads a Java properties file: "key=value", "key: value" or
// "key value" by line, comments after # or !, lines that go on after a trailing
// backslash, and the escapes \t \n \r \f \uXXXX. A key that stands twice has its
// last value. Nothing in such a file is an error.
func parseProperties(text string) map[string]string {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	props := map[string]string{}
	var line strings.Builder
	for raw := range strings.SplitSeq(text, "\n") {
		raw = strings.TrimLeft(raw, " \t\f")
		if line.Len() == 0 && (raw == "" || raw[0] == '#' || raw[0] == '!') {
			continue
		}
		if slashes := len(raw) - len(strings.TrimRight(raw, `\`)); slashes%2 == 1 {
			line.WriteString(raw[:len(raw)-1])
			continue
		}
		line.WriteString(raw)
		addProperty(props, line.String())
		line.Reset()
	}
	if line.Len() > 0 {
		addProperty(props, line.String())
	}
	return props
}

// addProperty splits a logical line at its first separator that is not escaped.
func addProperty(props map[string]string, line string) {
	end := len(line)
	for i := 0; i < len(line); i++ {
		if line[i] == '\\' {
			i++
		} else if strings.IndexByte("=: \t\f", line[i]) >= 0 {
			end = i
			break
		}
	}
	key, value := line[:end], strings.TrimLeft(line[end:], " \t\f")
	if value != "" && (value[0] == '=' || value[0] == ':') {
		value = strings.TrimLeft(value[1:], " \t\f")
	}
	props[unescape(key)] = unescape(value)
}

// unescape resolves the escapes of a properties file.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch c := s[i]; c {
		case 't':
			b.WriteByte('\t')
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 'f':
			b.WriteByte('\f')
		case 'u':
			if code, err := strconv.ParseUint(s[i+1:min(i+5, len(s))], 16, 16); err == nil && i+5 <= len(s) {
				b.WriteRune(rune(code))
				i += 4
				continue
			}
			b.WriteByte(c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
