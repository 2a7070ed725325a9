"""Tables that come with the package: runs drawn from a known law, and the measured testbed."""
