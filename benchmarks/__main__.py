"""`python -m benchmarks`: makes every table that needs no media of its own."""

from benchmarks import throughput

throughput.main()
