package listener

import "github.com/nixiemq/nixie/jms"

// policy is what holds for a message.
func (c *Container) policy(conn *jms.Connection, m *jms.Message) jms.RedeliveryPolicy {
	switch {
	case c.o.Policy != nil:
		return *c.o.Policy
	case conn == nil:
		return jms.DefaultRedeliveryPolicy()
	}
	return conn.RedeliveryPolicy(m.Destination)
}
