"""Shared by the tests of generated programs: names, a P4Runtime session, a place to run in."""
