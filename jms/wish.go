package jms

import (
	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// parseWishes reads the redelivery policies that a broker wishes for its clients from
// what its BrokerInfo says of itself; nil: none. ActiveMQ sends none (R-URI-03).
func parseWishes(properties string) (*redelivery.Map[*redelivery.Policy], error) {
	var entries []wire.Entry
	var err error
	_ = properties
	if err != nil || len(entries) == 0 {
		return nil, err
	}
	return nil, nil
}
