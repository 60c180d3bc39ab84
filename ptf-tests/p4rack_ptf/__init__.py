"""What the tests of generated programs share: names, a P4Runtime session, a place to run in."""
