"""A running node: configuration, clock, links, transports and routing put together."""
