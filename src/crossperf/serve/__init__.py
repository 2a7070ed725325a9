"""A prediction service: one `Service` of plain functions, a REST API around it, and pages on the same server."""
