"""Payloads of other encodings as values: CBOR, and ROS 2 messages in CDR."""
