"""What the operator says about itself and reads about routers: metrics, later reports, Prometheus and
egress."""
