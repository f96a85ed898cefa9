"""The only processes, threads and devices."""
