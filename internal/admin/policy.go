package admin

import (
	"fmt"
	"net/http"

	"github.com/nixiemq/nixie/internal/config"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/policy"
)

// config is the configuration that holds now; message.ErrUnavailable where it is
// not told here.
func (s *surface) config() (*config.Config, error) {
	if s.o.Config == nil {
		return nil, fmt.Errorf("the configuration is not told here: %w", message.ErrUnavailable)
	}
	return s.o.Config(), nil
}

// explain answers /api/v1/policy with a policy.Explanation.
func (s *surface) explain(r *http.Request) (any, error) {
	q, err := policy.Ask(r.URL.Query(), policy.ExplainParams())
	if err != nil {
		return nil, err
	}
	c, err := s.config()
	if err != nil {
		return nil, err
	}
	return policy.Explain(c, q), nil
}

// simulate answers /api/v1/policy/simulate with a policy.Simulation.
func (s *surface) simulate(r *http.Request) (any, error) {
	q, err := policy.Ask(r.URL.Query(), policy.SimulateParams())
	if err != nil {
		return nil, err
	}
	c, err := s.config()
	if err != nil {
		return nil, err
	}
	return policy.Simulate(c, q), nil
}

// lint answers /api/v1/policy/lint with a policy.Report. What reading the file
// said stands in the broker's log.
func (s *surface) lint(r *http.Request) (any, error) {
	client, err := policy.AskLint(r.URL.Query())
	if err != nil {
		return nil, err
	}
	c, err := s.config()
	if err != nil {
		return nil, err
	}
	return policy.Lint(c, nil, client), nil
}
