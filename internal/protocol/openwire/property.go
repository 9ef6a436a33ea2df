package openwire

import (
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
	"github.com/nixiemq/nixie/internal/selector"
)

// Property looks up one property of a message for a selector. What the broker has
// added wins. Properties that cannot be read are not there. It is a
// broker.Options.Properties.
func Property(m *message.Message, name string) (selector.Value, bool) {
	if v, ok := m.Added[name]; ok {
		return selectorValue(v), true
	}
	if m.Properties == nil {
		return selector.Value{}, false
	}
	v, ok, err := wire.LookupProperty(m.Properties, name)
	if err != nil || !ok {
		return selector.Value{}, false
	}
	return selectorValue(v), true
}

// selectorValue is a property's value as selectors see it.
func selectorValue(v any) selector.Value {
	switch v := v.(type) {
	case nil:
		return selector.NullValue()
	case bool:
		return selector.BoolValue(v)
	case int8:
		return selector.IntValue(int64(v))
	case int16:
		return selector.IntValue(int64(v))
	case int32:
		return selector.IntValue(int64(v))
	case int64:
		return selector.IntValue(v)
	case float32:
		return selector.FloatValue(float64(v))
	case float64:
		return selector.FloatValue(v)
	case string:
		return selector.StringValue(v)
	case wire.Char:
		return selector.StringValue(string(rune(v)))
	}
	return selector.OpaqueValue()
}
