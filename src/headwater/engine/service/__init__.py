"""The maintainer's process: its loop, lease, heartbeat, upkeep and verbs."""
