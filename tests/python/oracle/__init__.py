"""The metrics over frames and the attribution as they were computed in Python before the engine did: what its pass is
compared with."""
