package jms

import "github.com/nixiemq/nixie/internal/redelivery"

// parseWishes reads the redelivery policies that a broker wishes for its clients from
// its BrokerInfo; nil: none. ActiveMQ sends none (R-URI-03).
func parseWishes(properties string) (*redelivery.WishMap, error) {
	w, err := redelivery.ParseWishes(properties)
	if err != nil {
		return nil, err
	}
	return w.Map(), nil
}
