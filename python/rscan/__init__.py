"""Symbolic loops: differentiated, optimised and run as native code."""
