package config

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/nixiemq/nixie/internal/access"
	"github.com/nixiemq/nixie/internal/message"
)

// rightsOf reads the security-settings of a document, as they are enforced.
func rightsOf(t *testing.T, product, settings string) access.Rights {
	t.Helper()
	space, users := "urn:activemq", "login.config"
	document := "<core>" + settings + "</core>"
	if product == "hornetq" {
		space, users, document = "urn:hornetq", hornetQUsersName, settings
	}
	c, _, err := Load(Options{File: "f", ReadFile: func(path string) ([]byte, error) {
		switch path {
		case "f":
			return []byte(`<configuration xmlns="` + space + `">` + document + `</configuration>`), nil
		case users:
			return []byte(map[string]string{
				"login.config":   `activemq { ` + artemisJAAS.classes + `GuestLoginModule required credentialsInvalidate=true; };`,
				hornetQUsersName: `<configuration xmlns="urn:hornetq"><user name="u" password="p"/></configuration>`,
			}[users]), nil
		}
		return nil, fs.ErrNotExist
	}})
	if err != nil {
		t.Fatal(err)
	}
	return c.Access.Settings
}

// permit writes a security-setting; each permission is "type role,role".
func permit(match string, permissions ...string) string {
	text := `<security-setting match="` + match + `">`
	for _, p := range permissions {
		name, roles, _ := strings.Cut(p, " ")
		text += `<permission type="` + name + `" roles="` + roles + `"/>`
	}
	return text + "</security-setting>"
}

// TestSecuritySettings is R-HQ-128 and R-HQ-137: of the settings that fit the most
// specific one counts, whole, and what it does not allow is denied.
func TestSecuritySettings(t *testing.T) {
	t.Parallel()
	in := func(settings ...string) string {
		return "<security-settings>" + strings.Join(settings, "") + "</security-settings>"
	}
	everything := []string{"send amq", "consume amq", "browse amq", "createAddress amq", "deleteAddress amq", "createDurableQueue amq", "deleteDurableQueue amq",
		"createNonDurableQueue amq", "deleteNonDurableQueue amq"}
	narrow := in(permit("#", everything...), permit("orders.#", "send shop", "consume shop,amq"), permit("orders.eu", "consume eu"), permit("stock::audit", "consume auditors"))
	hornetQ := in(permit("#", "send guest", "consume guest", "createNonDurableQueue guest"), permit("jms.queue.orders.*", "send shop"), permit("jms.topic.#", "consume readers", "createDurableQueue readers", "deleteDurableQueue readers"))
	for name, c := range map[string]struct {
		product, settings string
		roles             string
		op                access.Operation
		d                 string
		want              bool
	}{
		"everything":               {"artemis", narrow, "amq", access.Write, "x", true},
		"another role":             {"artemis", narrow, "shop", access.Write, "x", false},
		"a narrower setting gives": {"artemis", narrow, "shop", access.Write, "orders.us", true},
		"and takes away, as settings do not unite": {"artemis", narrow, "amq", access.Write, "orders.us", false},
		"what both give":                              {"artemis", narrow, "amq", access.Read, "orders.us", true},
		"the narrowest alone":                         {"artemis", narrow, "shop", access.Read, "orders.eu", false},
		"the narrowest gives":                         {"artemis", narrow, "eu", access.Read, "orders.eu", true},
		"# stands for no word, too":                   {"artemis", narrow, "shop", access.Write, "orders", true},
		"of queues and topics alike":                  {"artemis", narrow, "shop", access.Write, "topic://orders.us", true},
		"several roles":                               {"artemis", narrow, "x y shop", access.Write, "orders.us", true},
		"browsing is not consuming":                   {"artemis", narrow, "shop", access.Browse, "orders.us", false},
		"browse":                                      {"artemis", narrow, "amq", access.Browse, "x", true},
		"create a queue":                              {"artemis", narrow, "amq", access.Create, "x", true},
		"create needs both permissions":               {"artemis", in(permit("#", "createDurableQueue amq")), "amq", access.Create, "x", false},
		"create a topic":                              {"artemis", in(permit("#", "createAddress amq")), "amq", access.Create, "topic://x", true},
		"remove":                                      {"artemis", narrow, "amq", access.Remove, "x", true},
		"remove, where one may only create":           {"artemis", in(permit("#", "createAddress amq", "createDurableQueue amq")), "amq", access.Remove, "x", false},
		"subscribe":                                   {"artemis", in(permit("#", "createNonDurableQueue amq")), "amq", access.Subscribe, "topic://x", true},
		"subscribe durably":                           {"artemis", in(permit("#", "createNonDurableQueue amq")), "amq", access.SubscribeDurably, "topic://x", false},
		"unsubscribe":                                 {"artemis", in(permit("#", "deleteDurableQueue amq")), "amq", access.Unsubscribe, "topic://x", true},
		"a temporary queue":                           {"artemis", in(permit("#", "createNonDurableQueue amq")), "amq", access.Create, "temp-queue://ID:1", true},
		"a temporary queue, where only others may":    {"artemis", in(permit("#", "createDurableQueue amq", "createAddress amq")), "amq", access.Create, "temp-queue://ID:1", false},
		"a queue of its address":                      {"artemis", in(permit("stock::stock", "consume auditors"), permit("#", "consume amq")), "amq", access.Read, "stock", false},
		"a queue of its address gives":                {"artemis", in(permit("stock::stock", "consume auditors"), permit("#", "consume amq")), "auditors", access.Read, "stock", true},
		"not for sending":                             {"artemis", in(permit("stock::stock", "consume auditors"), permit("#", "send amq")), "amq", access.Write, "stock", true},
		"no setting fits":                             {"artemis", in(permit("a.*", everything...)), "amq", access.Write, "a", false},
		"no settings at all":                          {"artemis", in(), "amq", access.Write, "a", false},
		"everybody is no role":                        {"artemis", in(permit("#", "send *")), "amq", access.Write, "a", false},
		"advisories of temporary destinations":        {"artemis", in(), "", access.Read, "topic://ActiveMQ.Advisory.TempQueue", true},
		"to subscribe to them":                        {"artemis", in(), "", access.Subscribe, "topic://ActiveMQ.Advisory.TempTopic", true},
		"not to send them":                            {"artemis", narrow, "amq", access.Write, "topic://ActiveMQ.Advisory.TempTopic", false},
		"everybody's scheduled messages":              {"artemis", narrow, "amq", access.Write, "topic://ActiveMQ.Scheduler.Management", false},
		"who may manage sees them":                    {"artemis", in(permit("#", "send amq", "manage ops")), "ops", access.Write, "topic://ActiveMQ.Scheduler.Management", true},
		"advisories of others' consumers":             {"artemis", in(), "", access.Read, "topic://ActiveMQ.Advisory.Consumer.Queue.Q", false},
		"a pattern":                                   {"artemis", narrow, "amq", access.Read, "y.>", true},
		"a pattern over a narrower setting":           {"artemis", narrow, "amq", access.Read, ">", false},
		"a pattern inside a setting":                  {"artemis", in(permit("#", "consume amq"), permit("orders.#", "consume shop")), "shop", access.Read, "orders.>", true},
		"a pattern inside a setting, by another role": {"artemis", in(permit("#", "consume amq"), permit("orders.#", "consume shop")), "amq", access.Read, "orders.*", false},
		"a pattern that reaches out of the setting":   {"artemis", in(permit("a.*", "consume shop")), "shop", access.Read, "a.>", false},
		"a pattern as wide as the setting":            {"artemis", in(permit("a.*", "consume shop")), "shop", access.Read, "a.*", true},
		"an exact setting inside the pattern":         {"artemis", in(permit("#", "consume amq"), permit("a.b.c", "consume shop")), "amq", access.Read, "a.*.c", false},
		"an exact setting beside the pattern":         {"artemis", in(permit("#", "consume amq"), permit("a.b.d", "consume shop")), "amq", access.Read, "a.*.c", true},
		"other wildcards": {"artemis", "<wildcard-addresses><delimiter>/</delimiter><any-words>%</any-words></wildcard-addresses>" + in(permit("a/%", "send shop"), permit("%", "consume amq")),
			"shop", access.Write, "a/b", true},
		"a pattern of words that are not known": {"artemis", "<wildcard-addresses><delimiter>/</delimiter><any-words>%</any-words></wildcard-addresses>" + in(permit("a/%", "consume shop"), permit("%", "consume amq")),
			"amq", access.Read, "b.>", false},

		"HornetQ: a queue":                    {"hornetq", hornetQ, "guest", access.Write, "x", true},
		"HornetQ: the narrower setting":       {"hornetq", hornetQ, "guest", access.Write, "orders.eu", false},
		"HornetQ: its role":                   {"hornetq", hornetQ, "shop", access.Write, "orders.eu", true},
		"HornetQ: browsing is consuming":      {"hornetq", hornetQ, "guest", access.Browse, "x", true},
		"HornetQ: nobody may create":          {"hornetq", hornetQ, "guest", access.Create, "x", false},
		"HornetQ: a temporary queue":          {"hornetq", hornetQ, "guest", access.Create, "temp-queue://ID:1", true},
		"HornetQ: a topic":                    {"hornetq", hornetQ, "readers", access.Read, "topic://news", true},
		"HornetQ: a durable subscription":     {"hornetq", hornetQ, "readers", access.SubscribeDurably, "topic://news", true},
		"HornetQ: no subscription that goes":  {"hornetq", hornetQ, "readers", access.Subscribe, "topic://news", false},
		"HornetQ: a pattern of queues":        {"hornetq", hornetQ, "guest", access.Read, "a.*", true},
		"HornetQ: a pattern over the setting": {"hornetq", hornetQ, "guest", access.Write, "orders.*", false},
		"HornetQ: topics are not concerned":   {"hornetq", hornetQ, "readers", access.Read, "topic://orders.>", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := message.ParseDestination(c.d, message.Queue)
			if err != nil {
				t.Fatal(err)
			}
			if got := rightsOf(t, c.product, c.settings).Allows(strings.Fields(c.roles), c.op, d); got != c.want {
				t.Errorf("allowed: %t, want %t", got, c.want)
			}
		})
	}
}
