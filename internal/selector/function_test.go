package selector

import (
	"slices"
	"strings"
	"testing"
)

// What ActiveMQ 5.17.2 says of the same, but where a comment tells.
func TestFunctions(t *testing.T) {
	t.Parallel()
	m := properties{
		"n": IntValue(1), "s": StringValue("3"), "b": BoolValue(true), "d": FloatValue(1.5), "t": StringValue("xyz"), "l": IntValue(5),
		"open": StringValue("["), "long": StringValue(strings.Repeat("a", 2000)), "raw": OpaqueValue(),
	}
	for text, want := range map[string]bool{
		"REGEX('y', t)":                                     true,
		"REGEX('Y', t)":                                     false,
		"REGEX('^y', t)":                                    false,
		"REGEX ('^x.z$', t)":                                true,
		"REGEX('(?i)X', t)":                                 true,
		"REGEX(t, 'wxyzz')":                                 true,
		"REGEX('1', n)":                                     true,
		"REGEX('tru', b)":                                   true,
		"REGEX('.', raw)":                                   false,
		"REGEX('a', missing)":                               false,
		"NOT REGEX('a', missing)":                           true,
		"REGEX(open, t)":                                    false, // no pattern
		"REGEX(long, long)":                                 false,
		"REGEX(missing, t)":                                 false,
		"REGEX('x',t) = TRUE":                               true,
		"b = INLIST(MAKELIST('3'), s)":                      true,
		"REPLACE(t,'[xy]','q') = 'qqz'":                     true,
		"REPLACE(t,'y','$0$0') = 'xyyz'":                    true,
		"REPLACE(t,'(x)(y)','$2$1') = 'yxz'":                true,
		"REPLACE(t,'(?P<first>x)','${first}1') = 'x1yz'":    true,
		"REPLACE(t,'(x)','$10') = 'x0yz'":                   true, // there is no group 10
		"REPLACE(t,'x','\\$1') = '$1yz'":                    true,
		"REPLACE(t,'x','$1') IS NULL":                       true, // no such group: ActiveMQ matches nothing
		"REPLACE(t,'x','$') IS NULL":                        true,
		"REPLACE(t,'x','\\') IS NULL":                       true,
		"REPLACE(t,'x','${no}') IS NULL":                    true,
		"REPLACE(t,'q|(x)','<$1>') = '<x>yz'":               true,
		"REPLACE('aXa','a',t) = 'xyzXxyz'":                  true,
		"REPLACE(missing,'x','y') IS NULL":                  true, // ActiveMQ: an error, which matches nothing
		"REPLACE(n,'1','2') IS NULL":                        true, // the same
		"REPLACE(t,'x','y') LIKE 'yy%'":                     true,
		"REPLACE(t,'x','y') + 'q' = 'yyzq'":                 true,
		"REGEX('x', REPLACE(t,'z','x'))":                    true,
		"INLIST(MAKELIST('3','4'), s)":                      true,
		"INLIST(MAKELIST(1,2), n)":                          true,
		"INLIST(MAKELIST(1.5), d)":                          true,
		"INLIST(MAKELIST(5), l)":                            true, // ActiveMQ: not for a long
		"INLIST(MAKELIST(n, 2), 1)":                         true,
		"INLIST(MAKELIST((n + 1)), 2)":                      true,
		"INLIST(MAKELIST(TRUE), b)":                         true,
		"INLIST(MAKELIST(-1), -1)":                          true,
		"INLIST(MAKELIST('1'), n)":                          false,
		"INLIST(MAKELIST('x'), missing)":                    false,
		"NOT INLIST(MAKELIST('x'), missing)":                true,
		"INLIST(MAKELIST(missing), missing)":                false,
		"INLIST(MAKELIST(missing), 'x')":                    false,
		"INLIST(SPLIT('a3b','[ab]'), s)":                    true,
		"INLIST(SPLIT('1,2',','), n)":                       false,
		"INLIST(SPLIT(t,''), 'y')":                          true,
		"INLIST(SPLIT(missing,','),'x')":                    false,
		"NOT INLIST(SPLIT(missing,','),'x')":                false,
		"INLIST(SPLIT('a,b,c',',',2),'b,c')":                true,
		"INLIST(SPLIT('a,b,c',',',2),'b')":                  false,
		"INLIST(SPLIT('a,b,,',','),'')":                     false,
		"INLIST(SPLIT('a,b,,',',',-1),'')":                  true,
		"INLIST(SPLIT('a,b',',','x'),'a')":                  false,
		"INLIST(MAKELIST('a'), s) OR n = 1":                 true,
		"INLIST(MAKELIST('a','xyz'), t) AND REGEX('^x', t)": true,
	} {
		s, err := Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := s.Matches(m); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
	s, err := Parse("REGEX('x', t) AND INLIST(SPLIT(s, ','), n)")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := s.Identifiers(), []string{"t", "s", "n"}; !slices.Equal(got, want) {
		t.Errorf("identifiers %v, want %v: a function is none", got, want)
	}
}
