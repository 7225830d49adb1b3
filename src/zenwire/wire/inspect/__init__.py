"""Bytes for people who look at bytes: what ``zenwire inspect`` shows.

``trace`` finds where each field is, ``dissect`` cuts input into batches and messages and goes on
after faults, ``guess`` tells what input is, ``dump`` prints it.
"""
